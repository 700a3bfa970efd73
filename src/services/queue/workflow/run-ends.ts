import { HttpError } from '../../../http/errors.js';
import { jsonText, jsonTextWithin } from '../../../lib/json/json-text.js';
import type { Queryable } from '../../../lib/postgres/postgres.js';
import { newMessageId } from '../message/message.js';
import type { QueueSettings } from '../settings.js';
import type { Invoker, Run } from './run.js';
import type { Follow } from './run-changes.js';
import { deliveryIn, stepMessage } from './run-messages.js';
import { placeOf } from './run-request.js';
import type { RunEnd, RunRows } from './run-rows.js';

/** Ends a run that is locked, and what it still had to do. */
export async function endRun(
  connection: Queryable,
  run: Run,
  end: RunEnd,
  messages: { except?: string; active?: boolean },
  rows: RunRows,
  follow: Follow,
): Promise<void> {
  await rows.end(connection, run, end);
  follow.free(await rows.cancelMessages(connection, [run], messages));
}

/** What a run tells the one that started it. */
export interface ToldEnd {
  /** The result as it was posted. */
  readonly body?: string;
  readonly isFailed?: boolean;
  readonly isCanceled?: boolean;
  /** How it is told, made beforehand. */
  readonly told?: PreparedEnd | undefined;
}

/** What the parent of a run is told of its end. */
export interface PreparedEnd {
  readonly run: Run;
  /** @throws HttpError 412 when it is too long */
  readonly step: () => string;
}

/**
 * Makes what the parent is told, before the transaction that tells it: 15 MB that become 100 take seconds beside others, and
 * Postgres ends a connection whose transaction waits so long.
 */
export async function prepareEnd(run: Run, body: string, most: number): Promise<PreparedEnd | undefined> {
  if (run.invoker === null) return undefined;
  try {
    const step = await toldStep(run.invoker, { body }, most);
    return { run, step: () => step };
  } catch (error) {
    return {
      run,
      step: () => {
        throw error;
      },
    };
  }
}

export interface TellTools {
  readonly rows: RunRows;
  readonly limits: QueueSettings['workflow'];
  /** Unix time in ms. */
  readonly now: number;
}

/**
 * Appends the end of a run to the one that waits for it. A parent that has ended meanwhile is told nothing; its log shows
 * the invocation.
 * @throws HttpError 412 when the parent has no room for the result: the run then fails, and the parent is told that
 */
export async function tellParent(
  connection: Queryable,
  { no, invoker }: Run,
  end: ToldEnd,
  { rows, limits, now }: TellTools,
  follow: Follow,
): Promise<void> {
  if (invoker === null) return;
  const parent = await rows.lock(connection, invoker.no);
  if (parent === undefined || parent.isOver) return;
  const told = end.told?.run.no === no ? end.told.step() : await toldStep(invoker, end, limits.maxStepBytes);
  const step = Buffer.from(told);
  if (end.body !== undefined && parent.stepsBytes + step.length > limits.maxRunBytes)
    throw new HttpError(
      'limit_reached',
      `With this result the steps of the run that waits for it have more than ${limits.maxRunBytes} bytes (workflow.maxRunBytes).`,
    );
  const messageId = newMessageId(now);
  const later = await rows.append(connection, parent, {
    ...placeOf(invoker.step),
    kind: 'result',
    messageId,
    body: step,
  });
  if (later === undefined) return;
  const place = { id: messageId, seq: parent.nextSeq, delayMs: 0, now };
  follow.send(stepMessage(later, deliveryIn(later, invoker.asked), place, limits.lazyBytes));
}

/** A result is told as JSON in JSON: control characters become seven times as long. @throws HttpError 412 */
async function toldStep(
  { step }: Invoker,
  { body, isFailed = false, isCanceled = false }: ToldEnd,
  most: number,
): Promise<string> {
  if (body === undefined) return jsonText({ ...step, out: JSON.stringify({ isFailed, isCanceled }) });
  const out = await jsonTextWithin({ body, isFailed, isCanceled }, most);
  const text = out && (await jsonTextWithin({ ...step, out }, most));
  if (text !== undefined) return text;
  throw new HttpError(
    'limit_reached',
    `The result is larger than ${most} bytes (workflow.maxStepBytes) as the run that waits for it would be told it.`,
  );
}
