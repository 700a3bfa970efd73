import { HttpError } from '../../../http/errors.js';
import type { Queryable } from '../../../lib/postgres/postgres.js';
import { isTooMuch } from '../errors.js';
import { newMessageId } from '../message/message.js';
import type { QueueSettings } from '../settings.js';
import { Batcher } from '../store/batcher.js';
import { INITIAL, type NewStep, type Run } from './run.js';
import type { Append, RunBatchRows } from './run-batch-rows.js';
import type { Follow, RunChanges } from './run-changes.js';
import { deliveryIn, type MessagePlace, stepMessage } from './run-messages.js';
import type { StepRequest, TriggerRequest } from './run-request.js';
import type { RunRows } from './run-rows.js';

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
export type Job =
  | TriggerRequest
  | StepRequest
  | { readonly kind: 'end'; readonly runId: string; readonly result: Buffer };

/** `apart`: it needs more than is done here, nothing of it was done, and it is to be done alone. */
export type Outcome =
  | { readonly answer: RunAnswer }
  | { readonly error: HttpError }
  | { readonly hasEnded: boolean }
  | 'apart';

export interface BatchTools {
  readonly config: QueueSettings;
  readonly rows: RunRows;
  readonly batchRows: RunBatchRows;
  readonly changes: RunChanges;
  /** Unix time in ms. */
  readonly now: () => number;
}

/** More would share less: with two, the application included, 56 runs a second were sustained and not 75. */
const PARALLEL = 1;
const SIZE = 100;
/** As of all statements that write bodies. */
const BYTES = 4 * 1024 * 1024;

/** A step that is about to be appended, and what follows from it. */
interface Pending extends Append {
  readonly at: number;
  readonly message: (later: Run, place: MessagePlace) => ReturnType<typeof stepMessage>;
  readonly delayMs: number;
}

/**
 * The common changes of many runs in one transaction: each for itself costs five round trips and a write to disk, which
 * is more than all the rest of a step.
 */
export class RunBatches {
  private readonly batcher: Batcher<Job, Outcome>;

  constructor(private readonly tools: BatchTools) {
    this.batcher = new Batcher({
      run: (jobs) => tools.changes.forRequest((connection, follow) => this.run(jobs, connection, follow)),
      size: SIZE,
      parallel: PARALLEL,
      weigh: (job) => (job.kind === 'end' ? job.result : job.body).length,
      weight: BYTES,
      tellApart: isTooMuch,
    });
  }

  add(job: Job): Promise<Outcome> {
    return this.batcher.add(job);
  }

  private async run(jobs: readonly Job[], connection: Queryable, follow: Follow): Promise<Outcome[]> {
    const outcomes: Outcome[] = jobs.map(() => 'apart');
    const known = jobs.flatMap((job) => (job.kind === 'trigger' ? [] : [job.runId]));
    const open =
      known.length === 0
        ? new Map<string, Run>()
        : await this.tools.rows.lockOpen(connection, [...new Set(known)]);
    // of several changes of one run the others come after it
    const taken = new Set<string>();
    const isFirst = (id: string) => !taken.has(id) && taken.add(id) !== undefined;
    const pending: Pending[] = [];
    const ends: { run: Run; result: Buffer }[] = [];
    const starts: { at: number; trigger: TriggerRequest }[] = [];
    for (const [at, job] of jobs.entries()) {
      if (!isFirst(job.runId)) continue;
      if (job.kind === 'trigger') {
        starts.push({ at, trigger: job });
        continue;
      }
      const run = open.get(job.runId);
      if (job.kind === 'end') {
        if (run === undefined) outcomes[at] = { hasEnded: false };
        else if (run.invoker === null) {
          ends.push({ run, result: job.result });
          outcomes[at] = { hasEnded: true };
        }
      } else if (run === undefined || (job.createdMs ?? run.createdMs) !== run.createdMs)
        outcomes[at] = { error: ended(job.runId) };
      else if (this.hasRoom(run, job.body)) pending.push(this.stepOf(at, run, job));
    }
    pending.push(...(await this.start(connection, starts)));
    await this.append(connection, pending, outcomes, follow);
    if (ends.length > 0) {
      await this.tools.batchRows.endAll(connection, ends);
      const runs = ends.map(({ run }) => run);
      // a delivery under way may be the one that asks for this
      follow.free(await this.tools.rows.cancelMessages(connection, runs, { active: false }));
    }
    return outcomes;
  }

  /** Whatever is refused is so by the way that does one alone. */
  private hasRoom({ nextSeq, stepsBytes }: Pick<Run, 'nextSeq' | 'stepsBytes'>, body: Buffer): boolean {
    const { maxSteps, maxRunBytes } = this.tools.config.workflow;
    return nextSeq < maxSteps && stepsBytes + body.length <= maxRunBytes;
  }

  private stepOf(at: number, run: Run, { place, body, asked, delayMs }: StepRequest): Pending {
    const { now, config } = this.tools;
    const kind = place.targetStep === null ? ('result' as const) : ('plan' as const);
    return {
      at,
      run,
      delayMs,
      step: { ...place, kind, messageId: newMessageId(now()), body },
      message: (later, to) => stepMessage(later, deliveryIn(later, asked), to, config.workflow.lazyBytes),
    };
  }

  private async start(
    connection: Queryable,
    starts: readonly { at: number; trigger: TriggerRequest }[],
  ): Promise<Pending[]> {
    const { now, config, batchRows } = this.tools;
    const empty = { nextSeq: 0, stepsBytes: 0 };
    const fitting = starts.filter(({ trigger }) => this.hasRoom(empty, trigger.body));
    if (fitting.length === 0) return [];
    const given = fitting.map(({ trigger: { runId: id, url, labels, settings, callerIp, unknownSdk } }) => ({
      ...{ id, url, labels, settings, callerIp, invoker: null, createdMs: now(), awaitsSdk: unknownSdk },
    }));
    const made = await batchRows.createAll(connection, given);
    return fitting.flatMap(({ at, trigger: { runId, body, delayMs } }): Pending[] => {
      const run = made.get(runId);
      if (run === undefined) return [];
      const step: NewStep = { ...INITIAL, kind: 'init', messageId: newMessageId(now()), body };
      const message = (later: Run, to: MessagePlace) =>
        stepMessage(later, later.settings.delivery, to, config.workflow.lazyBytes);
      return [{ at, run, step, delayMs, message }];
    });
  }

  private async append(
    connection: Queryable,
    pending: readonly Pending[],
    outcomes: Outcome[],
    follow: Follow,
  ): Promise<void> {
    if (pending.length === 0) return;
    const { now, batchRows } = this.tools;
    const appended = await batchRows.appendAll(connection, pending);
    for (const { at, run, step, delayMs, message } of pending) {
      // it is there already, and the other way says which message it had
      if (!appended.has(run.no)) continue;
      const { messageId } = step;
      const later = { ...run, nextSeq: run.nextSeq + 1, stepsBytes: run.stepsBytes + step.body.length };
      follow.send(message(later, { id: messageId, seq: run.nextSeq, delayMs, now: now() }));
      outcomes[at] = {
        answer: { messageId, runId: run.id, createdMs: run.createdMs, deduplicated: false },
      };
    }
  }
}
