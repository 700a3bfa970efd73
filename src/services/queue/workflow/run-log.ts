import { stringTexts } from '../../../lib/json/json-text.js';
import { Pace } from '../../../lib/slices.js';
import { inPieces } from '../store/pieces.js';
import { groupsOf, type ShownStep, type StepGroup } from './run-groups.js';
import type { LoggedStep, RunRecord, RunRecords } from './run-record.js';
import type { FoundRuns, RunCursor } from './run-search.js';
import { nextFields, runFields, type StepBodies, shown, stepFields } from './run-view.js';

/** A page ends behind the run with which it has so many characters, or would have; a single run may have more. */
const PAGE_SIZE = 4 * 1024 * 1024;
/** Bodies of steps that are read at once, in bytes; a single one may have more. */
const READ_BYTES = 1024 * 1024;
/** What a step costs beside its bodies. */
const STEP_BYTES = 500;
/** Characters of a text that are written at once. */
const TEXT = 64 * 1024;

/**
 * A page of the log as JSON, run by run and step by step as it is read: the history of one run alone may have hundreds of
 * megabytes.
 * @param cursor the text of a place in the log
 */
export async function* logPage(
  { runs: found, next }: FoundRuns,
  cursor: (place: RunCursor) => string,
  records: RunRecords,
): AsyncGenerator<string> {
  yield '{"runs":[';
  let size = 0;
  let last: RunCursor | undefined;
  let behind = next;
  for (const place of found) {
    const [run] = await records.runs([place.no]);
    if (run !== undefined) {
      const more = run.stepsBytes + run.resultBytes;
      if (size > 0 && size + more > PAGE_SIZE) {
        behind = last;
        break;
      }
      if (size > 0) yield ',';
      for await (const text of runText(await records.record(run), records)) {
        size += text.length;
        yield text;
      }
    }
    last = place;
  }
  yield `]${behind === undefined ? '' : `,"cursor":${JSON.stringify(cursor(behind))}`}}`;
}

async function* runText(record: RunRecord, records: RunRecords): AsyncGenerator<string> {
  const { run } = record;
  yield [...objectText(runFields(record))].join('').slice(0, -1);
  yield ',"steps":[';
  yield* groupsText(groupsOf(record), record, records);
  yield ']';
  if (run.resultBytes > 0) {
    yield ',"workflowRunResponse":';
    yield* stringTexts(shown(await records.result(run), run.settings.delivery.redact) as string);
  }
  yield '}';
}

/** Bodies are read for many groups at once: most have one step. Each yield costs as much as a short step, so texts are gathered. */
async function* groupsText(
  groups: readonly StepGroup[],
  record: RunRecord,
  records: RunRecords,
): AsyncGenerator<string> {
  const pace = new Pace();
  let text = '';
  for (const piece of inPieces(groups.flatMap(placesOf), ({ step }) => bytesOf(step), READ_BYTES)) {
    const bodies = await bodiesOf(
      piece.map(({ step }) => step),
      record,
      records,
    );
    for (const { step, before, after } of piece) {
      text += before;
      for (const part of objectText(await stepFields(step, await bodies(step), record))) {
        text += part;
        if (text.length < TEXT) continue;
        yield text;
        text = '';
      }
      text += after;
      await pace.rest();
    }
  }
  const next = groups.find((group) => group.type === 'next');
  if (next !== undefined) text += nextText(next, record);
  // each group ends with a comma
  yield text.slice(0, -1);
}

/** A step with what stands about it in the text of its group. */
function placesOf(group: StepGroup): { step: ShownStep; before: string; after: string }[] {
  if (group.type === 'next') return [];
  const last = group.steps.length - 1;
  return group.steps.map((step, i) => ({
    step,
    before: i === 0 ? '{"steps":[' : ',',
    after: i === last ? `],"type":"${group.type}"},` : '',
  }));
}

function nextText({ messages }: Extract<StepGroup, { type: 'next' }>, record: RunRecord): string {
  const texts = messages.map((message) => [...objectText(nextFields(message, record))].join(''));
  return `{"steps":[${texts.join(',')}],"type":"next"},`;
}

/** Reads what was stored of steps, but for other runs that they started, which are read one by one. */
async function bodiesOf(
  steps: readonly ShownStep[],
  { run }: RunRecord,
  records: RunRecords,
): Promise<(step: ShownStep) => Promise<StepBodies>> {
  const bodies = await records.bodies(
    run,
    steps.flatMap(seqsOf),
    steps.reduce((sum, step) => sum + bytesOf(step), 0),
  );
  const ids = steps.flatMap(({ call }) => (call === undefined ? [] : [call.messageId]));
  const calls = await records.calls(ids);
  return async (step) => {
    const posted = postedOf(step);
    return {
      posted: posted && bodies.get(posted.seq),
      answer: step.answer && bodies.get(step.answer.seq),
      call: step.call && calls.get(step.call.messageId),
      child: step.invocation && (await childOf(step.invocation, records)),
    };
  };
}

/** The plan of a step that sleeps beside others says until when. */
const postedOf = ({ result, first }: ShownStep) => result ?? (first.kind === 'plan' ? first : undefined);

function seqsOf(step: ShownStep): number[] {
  return [postedOf(step)?.seq, step.answer?.seq].filter((seq) => seq !== undefined);
}

function bytesOf(step: ShownStep): number {
  const { answer, callMessage } = step;
  return STEP_BYTES + (postedOf(step)?.bytes ?? 0) + (answer?.bytes ?? 0) + (callMessage?.bytes ?? 0);
}

function childOf({ meta }: LoggedStep, records: RunRecords) {
  const { runId, createdMs } = meta as { runId: string; createdMs: number };
  return records.child(runId, createdMs);
}

/** An object as JSON, its long texts in parts. Fields that are `undefined` are left out. */
function* objectText(fields: Readonly<Record<string, unknown>>): Generator<string> {
  let separator = '{';
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    yield `${separator}${JSON.stringify(key)}:`;
    if (typeof value === 'string') yield* stringTexts(value);
    else yield JSON.stringify(value);
    separator = ',';
  }
  yield separator === '{' ? '{}' : '}';
}

/** Short texts gathered, so that each is worth a write. */
export async function* gathered(texts: AsyncIterable<string>): AsyncGenerator<string> {
  let text = '';
  for await (const more of texts) {
    text += more;
    if (text.length < TEXT) continue;
    yield text;
    text = '';
  }
  if (text !== '') yield text;
}
