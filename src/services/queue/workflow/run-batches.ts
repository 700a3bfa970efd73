import { HttpError } from '../../../http/errors.js';
import type { Database } from '../../../lib/postgres/postgres.js';
import { isTooMuch } from '../errors.js';
import { type NewMessage, newMessageId } from '../message/message.js';
import type { QueueSettings } from '../settings.js';
import { Batcher } from '../store/batcher.js';
import { KnownRuns } from './known-runs.js';
import type { KnownRun } from './run.js';
import type { Append, End, RunBatchRows, Start } from './run-batch-rows.js';
import type { RunChanges } from './run-changes.js';
import { deliveryIn, stepMessage } from './run-messages.js';
import type { StepRequest, TriggerRequest } from './run-request.js';

/** What a request of a run is answered. */
export interface RunAnswer {
  readonly messageId: string;
  readonly runId: string;
  readonly createdMs: number;
  /** Nothing was stored: it is there already. */
  readonly deduplicated: boolean;
}

/** The SDKs take a 400 for this, and for nothing else. */
export const ended = (id: string) =>
  new HttpError('invalid_request', `The workflow run ${id} has ended, or there is none.`);

/** What most requests of runs are: one that starts a run, appends a step to it or ends it. */
export type Job = TriggerRequest | StepRequest | (End & { readonly kind: 'end' });

/** `apart`: it needs more than is done here, nothing of it was done, and it is to be done alone. */
export type Outcome = { readonly answer: RunAnswer } | { readonly hasEnded: true } | 'apart';

export interface BatchTools {
  readonly config: QueueSettings;
  readonly batchRows: RunBatchRows;
  readonly changes: RunChanges;
  readonly database: Database;
  /** Unix time in ms. */
  readonly now: () => number;
}

/** More would share less: with two, the application included, 56 runs a second were sustained and not 75. */
const PARALLEL = 1;
const SIZE = 100;
/** As of all statements that write bodies. */
const BYTES = 4 * 1024 * 1024;

/**
 * The common changes of many runs in one statement: a transaction for each costs five round trips and a write to disk, which
 * is more than all the rest of a step.
 */
export class RunBatches {
  private readonly known = new KnownRuns();
  private readonly starts: Batcher<TriggerRequest, Outcome>;
  private readonly steps: Batcher<StepRequest, Outcome>;
  private readonly ends: Batcher<End, Outcome>;

  constructor(private readonly tools: BatchTools) {
    const common = { size: SIZE, parallel: PARALLEL, weight: BYTES, tellApart: isTooMuch };
    const weigh = ({ body }: { readonly body: Buffer }) => body.length;
    this.starts = new Batcher<TriggerRequest, Outcome>({ ...common, weigh, run: (jobs) => this.start(jobs) });
    this.steps = new Batcher<StepRequest, Outcome>({ ...common, weigh, run: (jobs) => this.append(jobs) });
    this.ends = new Batcher({
      ...common,
      weigh: ({ result }) => result.length,
      run: (jobs) => this.end(jobs),
    });
  }

  add(job: Job): Promise<Outcome> {
    if (job.kind === 'trigger') return this.starts.add(job);
    return job.kind === 'step' ? this.steps.add(job) : this.ends.add(job);
  }

  private async start(jobs: readonly TriggerRequest[]): Promise<Outcome[]> {
    const { changes, batchRows, config } = this.tools;
    const { maxSteps, maxRunBytes } = config.workflow;
    // whatever is refused is so by the way that does one alone
    const fitting = firstOfEach(jobs).filter(({ body }) => maxSteps > 0 && body.length <= maxRunBytes);
    const starts = new Map(fitting.map((job) => [job, this.startOf(job)]));
    if (starts.size === 0) return jobs.map(() => 'apart');
    let made: ReadonlyMap<string, string> = new Map();
    const all = [...starts.values()];
    await changes.byStatement(messagesOf(all), async (connection) => {
      made = await batchRows.startAll(connection, all);
      return new Set(all.flatMap(({ run, message }) => (made.has(run.id) ? [message.id] : [])));
    });
    return jobs.map((job) => {
      const start = starts.get(job);
      const no = made.get(job.runId);
      if (start === undefined || no === undefined) return 'apart';
      this.known.add({ ...start.run, no });
      return answerOf(start.run, start.message);
    });
  }

  private startOf(job: TriggerRequest): Start {
    const { now, config } = this.tools;
    const { runId: id, url, labels, settings, callerIp, unknownSdk, body: payload, delayMs } = job;
    const run = {
      id,
      url,
      labels,
      settings,
      callerIp,
      invoker: null,
      createdMs: now(),
      awaitsSdk: unknownSdk,
    };
    const place = { id: newMessageId(now()), seq: 0, delayMs, now: now() };
    const first = { ...run, no: '', stepsBytes: payload.length };
    return {
      run,
      payload,
      message: stepMessage(first, settings.delivery, place, config.workflow.lazyBytes),
    };
  }

  private async append(jobs: readonly StepRequest[]): Promise<Outcome[]> {
    const { changes, batchRows } = this.tools;
    const runs = await this.runsOf(jobs);
    const appends = new Map<StepRequest, Append>();
    for (const job of firstOfEach(jobs)) {
      const run = runs.get(job.runId);
      if (run !== undefined && (job.createdMs ?? run.createdMs) === run.createdMs)
        appends.set(job, this.appendOf(job, run));
    }
    if (appends.size === 0) return jobs.map(() => 'apart');
    const all = [...appends.values()];
    const appended = await changes.byStatement(messagesOf(all), (connection) =>
      batchRows.appendAll(connection, all),
    );
    return jobs.map((job) => {
      const append = appends.get(job);
      if (append !== undefined && appended.has(append.message.id))
        return answerOf(append.run, append.message);
      // it may have ended, and another one of its id begun
      this.known.forget(job.runId);
      return 'apart';
    });
  }

  private appendOf({ place, body, asked, delayMs }: StepRequest, run: KnownRun): Append {
    const { now, config } = this.tools;
    const kind = place.targetStep === null ? ('result' as const) : ('plan' as const);
    const messageId = newMessageId(now());
    // its place in the run, and what its body comes to, are found by the statement
    const to = { id: messageId, seq: 1, delayMs, now: now() };
    const message = stepMessage(
      { ...run, stepsBytes: 0 },
      deliveryIn(run, asked),
      to,
      config.workflow.lazyBytes,
    );
    return { run, step: { ...place, kind, messageId, body }, message };
  }

  /** The runs that steps belong to, as far as they are known or under way. */
  private async runsOf(jobs: readonly StepRequest[]): Promise<Map<string, KnownRun>> {
    const { batchRows, database } = this.tools;
    const runs = new Map<string, KnownRun>();
    const unknown = new Set<string>();
    for (const { runId, createdMs } of jobs) {
      const run = this.known.get(runId);
      if (run === undefined || run.createdMs !== (createdMs ?? run.createdMs)) unknown.add(runId);
      else runs.set(runId, run);
    }
    if (unknown.size === 0) return runs;
    for (const run of await batchRows.readOpen(database, [...unknown])) {
      runs.set(run.id, run);
      this.known.add(run);
    }
    return runs;
  }

  private async end(jobs: readonly End[]): Promise<Outcome[]> {
    const { changes, batchRows, database } = this.tools;
    const first = new Set(firstOfEach(jobs));
    const { ended, keys } = await batchRows.endAll(database, [...first]);
    changes.free(keys);
    return jobs.map((job) => {
      this.known.forget(job.runId);
      return first.has(job) && ended.has(job.runId) ? { hasEnded: true } : 'apart';
    });
  }
}

/** Of several changes of one run the others come after it. */
function firstOfEach<T extends { readonly runId: string }>(jobs: readonly T[]): T[] {
  const taken = new Set<string>();
  return jobs.filter(({ runId }) => !taken.has(runId) && taken.add(runId) !== undefined);
}

const messagesOf = (all: readonly { readonly message: NewMessage }[]) => all.map(({ message }) => message);

function answerOf({ id: runId, createdMs }: Omit<KnownRun, 'no'>, { id: messageId }: NewMessage): Outcome {
  return { answer: { messageId, runId, createdMs, deduplicated: false } };
}
