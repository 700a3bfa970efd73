import { HttpError } from '../../../http/errors.js';
import type { Queryable } from '../../../lib/postgres/postgres.js';
import { Pace } from '../../../lib/slices.js';
import type { Guard } from '../intake/destination.js';
import type { DailyUsage } from '../intake/usage.js';
import { newMessageId } from '../message/message.js';
import type { TicketPublisher } from '../rabbitmq/publisher.js';
import type { QueueSettings } from '../settings.js';
import { INITIAL, type Invoker, type NewStep, type Run } from './run.js';
import { ended, type RunAnswer, type RunBatches } from './run-batches.js';
import type { Follow, RunChanges } from './run-changes.js';
import { endRun, prepareEnd, tellParent } from './run-ends.js';
import { callMessage, deliveryIn, stepMessage } from './run-messages.js';
import {
  type CallRequest,
  type InvokeRequest,
  type RunPublish,
  type RunRequest,
  readRunRequest,
  type StepRequest,
  type TriggerRequest,
} from './run-request.js';
import type { RunRows, ToldStep } from './run-rows.js';

/** Entries of one batch that belong to runs: they are stored in one transaction. */
const MAX_ENTRIES = 1_000;

export interface RunTools {
  readonly config: QueueSettings;
  readonly guard: Guard;
  readonly rows: RunRows;
  readonly changes: RunChanges;
  readonly batches: RunBatches;
  /** Reads. */
  readonly database: Queryable;
  readonly publisher: TicketPublisher;
  readonly usage: DailyUsage;
  /** Unix time in ms. */
  readonly now: () => number;
  /** Told of messages that were accepted. */
  readonly onAccepted: (count: number) => void;
}

/** Workflow runs as the SDKs drive them: started, continued step by step, ended, cancelled. */
export class Runs {
  constructor(private readonly tools: RunTools) {}

  /**
   * Takes requests that belong to runs, all or none.
   * @throws HttpError 400 when a run has ended, 412 for anything that cannot be had, 429, 503
   */
  async accept(publishes: readonly RunPublish[]): Promise<RunAnswer[]> {
    const { publisher, usage, onAccepted } = this.tools;
    const requests = await this.read(publishes);
    const reason = publisher.unavailable;
    if (reason !== undefined) throw new HttpError('backend_unavailable', `${reason}.`);
    const started = requests.filter(({ kind }) => kind === 'trigger').length;
    await usage.take(started);
    const answers = await this.takeAll(requests).catch(async (error: unknown) => {
      await usage.giveBack(started);
      throw error;
    });
    const fresh = answers.filter(({ deduplicated }) => !deduplicated).length;
    onAccepted(fresh);
    // of a run that is under way nothing is refused for the number of the day
    await usage.charge(Math.max(0, fresh - started));
    return answers;
  }

  private async takeAll(requests: readonly RunRequest[]): Promise<RunAnswer[]> {
    const { rows, changes, batches } = this.tools;
    const [only] = requests;
    if (
      requests.length === 1 &&
      (only?.kind === 'step' || (only?.kind === 'trigger' && !only.triggerBySdk))
    ) {
      const outcome = await batches.add(only);
      if (outcome !== 'apart' && 'answer' in outcome) return [outcome.answer];
    }
    return changes.forRequest(async (connection, follow) => {
      const open = await rows.lockOpen(connection, [...new Set(requests.flatMap(namedBy))]);
      const taken = new Map<RunRequest, RunAnswer>();
      for (const request of inOrder(requests))
        taken.set(request, await this.take(connection, request, open, follow));
      return requests.map((request) => taken.get(request) as RunAnswer);
    });
  }

  /** The workflow has come to its end. @returns false when there is no such run under way */
  async end(id: string, result: Buffer): Promise<boolean> {
    const outcome = await this.tools.batches.add({ kind: 'end', runId: id, result });
    if (outcome !== 'apart' && 'hasEnded' in outcome) return outcome.hasEnded;
    const { rows, database, config } = this.tools;
    const body = result.toString('utf8');
    const before = (await rows.lockOpen(database, [id])).get(id);
    const told = before && (await prepareEnd(before, body, config.workflow.maxStepBytes));
    return this.change(id, async (connection, run, follow) => {
      // a delivery under way may be the one that asks for this
      await endRun(connection, run, { state: 'RUN_SUCCESS', result }, { active: false }, rows, follow);
      await this.tell(connection, run, { body, told }, follow);
    });
  }

  /** @returns false when there is no such run under way */
  cancel(id: string): Promise<boolean> {
    return this.change(id, (connection, run, follow) => this.cancelLocked(connection, run, follow));
  }

  /** The same for one run of an id that was used again and again. @param no its number */
  cancelOne(no: string): Promise<boolean> {
    const { changes, rows } = this.tools;
    return changes.forRequest(async (connection, follow) => {
      const run = await rows.lock(connection, no);
      if (run === undefined || run.isOver) return false;
      await this.cancelLocked(connection, run, follow);
      return true;
    });
  }

  private async cancelLocked(connection: Queryable, run: Run, follow: Follow): Promise<void> {
    await endRun(connection, run, { state: 'RUN_CANCELED' }, {}, this.tools.rows, follow);
    await this.tell(connection, run, { isCanceled: true }, follow);
  }

  /** Runs by their numbers. */
  byNumbers(nos: readonly string[]): Promise<Map<string, Run>> {
    return this.tools.rows.readAll(this.tools.database, nos);
  }

  /** What the workflow has been told; `undefined` when there is no such run under way. */
  async steps(id: string): Promise<AsyncIterable<ToldStep> | undefined> {
    const { rows, database } = this.tools;
    const run = await rows.newest(database, id);
    return run === undefined || run.isOver ? undefined : rows.toldInPieces(database, run.no, run.nextSeq);
  }

  private tell(connection: Queryable, run: Run, end: Parameters<typeof tellParent>[2], follow: Follow) {
    const { rows, config, now } = this.tools;
    return tellParent(connection, run, end, { rows, limits: config.workflow, now: now() }, follow);
  }

  private change(
    id: string,
    work: (connection: Queryable, run: Run, follow: Follow) => Promise<void>,
  ): Promise<boolean> {
    return this.tools.changes.forRequest(async (connection, follow) => {
      const run = (await this.tools.rows.lockOpen(connection, [id])).get(id);
      if (run === undefined) return false;
      await work(connection, run, follow);
      return true;
    });
  }

  private async read(publishes: readonly RunPublish[]): Promise<RunRequest[]> {
    const { config, guard, now } = this.tools;
    const { maxRetries, maxStepBytes } = config.workflow;
    if (publishes.length > MAX_ENTRIES)
      throw new HttpError(
        'limit_reached',
        `A batch with messages of workflow runs has at most ${MAX_ENTRIES} entries.`,
      );
    const limits = { maxRetries: Math.max(maxRetries, config.maxRetries), maxDelay: config.maxDelay };
    const pace = new Pace();
    const requests: RunRequest[] = [];
    for (const publish of publishes) {
      if (publish.body.length > maxStepBytes)
        throw new HttpError(
          'limit_reached',
          `A body of ${publish.body.length} bytes is larger than the limit of ${maxStepBytes} bytes (workflow.maxStepBytes).`,
        );
      requests.push(await readRunRequest(publish, { limits, guard, now: now() }));
      await pace.rest();
    }
    return requests;
  }

  private take(
    connection: Queryable,
    request: RunRequest,
    open: Map<string, Run>,
    follow: Follow,
  ): Promise<RunAnswer> {
    if (request.kind === 'trigger') return this.start(connection, request, open, null, follow);
    const run = open.get(request.runId);
    const { createdMs = run?.createdMs } = request;
    if (run === undefined || run.createdMs !== createdMs) throw ended(request.runId);
    if (request.kind === 'invoke') return this.invoke(connection, request, run, open, follow);
    return this.append(connection, request, run, open, follow);
  }

  private async append(
    connection: Queryable,
    request: StepRequest | CallRequest,
    run: Run,
    open: Map<string, Run>,
    follow: Follow,
  ): Promise<RunAnswer> {
    const { now, config } = this.tools;
    const place = { id: newMessageId(now()), seq: run.nextSeq, delayMs: request.delayMs, now: now() };
    const { kind, meta } =
      request.kind === 'call'
        ? { kind: 'toCallback' as const, meta: { place: request.place, callback: request.callback } }
        : { kind: request.place.targetStep === null ? ('result' as const) : ('plan' as const), meta: null };
    // what is sent to a third party is kept with its message
    const body = request.kind === 'call' ? Buffer.alloc(0) : request.body;
    const step = { ...request.place, kind, messageId: place.id, body, meta };
    const later = await this.store(connection, run, step);
    if (typeof later === 'string') return this.repeated(run, later, follow);
    open.set(run.id, later);
    follow.send(
      request.kind === 'call'
        ? callMessage(later, request, place)
        : stepMessage(later, deliveryIn(later, request.asked), place, config.workflow.lazyBytes),
    );
    return { messageId: place.id, runId: run.id, createdMs: run.createdMs, deduplicated: false };
  }

  private async invoke(
    connection: Queryable,
    request: InvokeRequest,
    run: Run,
    open: Map<string, Run>,
    follow: Follow,
  ): Promise<RunAnswer> {
    const { place, step, asked, trigger } = request;
    const { no, id: runId, createdMs, url } = run;
    const known = await this.tools.rows.messageOf(connection, run, { ...place, kind: 'invoke' });
    if (known !== undefined) return this.repeated(run, known, follow);
    const answer = await this.start(
      connection,
      trigger,
      open,
      { no, runId, createdMs, url, step, asked },
      follow,
    );
    // a run of that id that somebody else started will not tell this one of its end
    if (answer.deduplicated)
      throw new HttpError('limit_reached', `The workflow run ${trigger.runId} is under way already.`);
    const later = await this.store(connection, run, {
      ...place,
      kind: 'invoke',
      messageId: answer.messageId,
      body: Buffer.alloc(0),
      meta: { runId: answer.runId, createdMs: answer.createdMs, url: trigger.url },
    });
    if (typeof later !== 'string') open.set(run.id, later);
    return answer;
  }

  /** @returns the run with the step, or the message of the same step that was there before */
  private async store(connection: Queryable, run: Run, step: NewStep): Promise<Run | string> {
    const { rows, config } = this.tools;
    const { maxSteps, maxRunBytes } = config.workflow;
    const refusal =
      run.nextSeq >= maxSteps
        ? `The run has ${maxSteps} steps already (workflow.maxSteps).`
        : run.stepsBytes + step.body.length > maxRunBytes
          ? `With this step those of the run have more than ${maxRunBytes} bytes (workflow.maxRunBytes).`
          : undefined;
    const later = refusal === undefined ? await rows.append(connection, run, step) : undefined;
    if (later !== undefined) return later;
    const known = await rows.messageOf(connection, run, step);
    if (known !== undefined) return known;
    throw refusal === undefined
      ? new Error(`step ${step.stepId} of run ${run.no} is neither there nor new`)
      : new HttpError('limit_reached', refusal);
  }

  private repeated({ id, createdMs }: Run, messageId: string, follow: Follow): RunAnswer {
    follow.repeat(messageId);
    return { messageId, runId: id, createdMs, deduplicated: true };
  }

  private async start(
    connection: Queryable,
    trigger: TriggerRequest,
    open: Map<string, Run>,
    invoker: Invoker | null,
    follow: Follow,
  ): Promise<RunAnswer> {
    const { rows, now } = this.tools;
    const { runId: id, url, labels, settings, callerIp, unknownSdk } = trigger;
    const given = { id, url, labels, settings, callerIp, invoker, createdMs: now(), awaitsSdk: unknownSdk };
    const there = open.get(id);
    if (there !== undefined) return this.startAgain(connection, trigger, there, open, follow);
    const run = await rows.create(connection, given);
    if (run === undefined) {
      const other = (await rows.lockOpen(connection, [id])).get(id);
      // it began after the runs were locked, and has ended since
      if (other === undefined)
        throw new HttpError('backend_unavailable', 'The run is being started. Try again.');
      return this.startAgain(connection, trigger, other, open, follow);
    }
    const messageId = newMessageId(now());
    const later = await this.store(connection, run, {
      ...INITIAL,
      kind: 'init',
      messageId,
      body: trigger.body,
    });
    if (typeof later === 'string') throw new Error(`run ${run.no} has begun before`);
    open.set(id, later);
    this.sendFirst(later, messageId, trigger, follow);
    return { messageId, runId: id, createdMs: run.createdMs, deduplicated: false };
  }

  /** The run is under way: the SDK may tell what it did not know at its start; anybody else repeats that. */
  private async startAgain(
    connection: Queryable,
    trigger: TriggerRequest,
    run: Run,
    open: Map<string, Run>,
    follow: Follow,
  ): Promise<RunAnswer> {
    const { rows, now } = this.tools;
    if (!trigger.triggerBySdk || !run.awaitsSdk) {
      const first = await rows.messageOf(connection, run, { ...INITIAL, kind: 'init' });
      return this.repeated(run, first ?? '', follow);
    }
    const messageId = newMessageId(now());
    const labels = trigger.labels.length === 0 ? run.labels : trigger.labels;
    await rows.adopt(connection, run, trigger.settings, labels, messageId);
    const told = { ...run, settings: trigger.settings, labels, awaitsSdk: false };
    open.set(run.id, told);
    this.sendFirst(told, messageId, { ...trigger, delayMs: 0 }, follow);
    return { messageId, runId: run.id, createdMs: run.createdMs, deduplicated: false };
  }

  private sendFirst(run: Run, id: string, { delayMs }: TriggerRequest, follow: Follow): void {
    const { now, config } = this.tools;
    const place = { id, seq: 0, delayMs, now: now() };
    follow.send(stepMessage(run, run.settings.delivery, place, config.workflow.lazyBytes));
  }
}

/** The runs that a request is about: an invocation that names one under way must not wait for it with its parent locked. */
function namedBy(request: RunRequest): string[] {
  return request.kind === 'invoke' ? [request.runId, request.trigger.runId] : [request.runId];
}

/** Those that start runs last, by their ids: two batches that start the same ones do not wait for each other in a circle. */
function inOrder(requests: readonly RunRequest[]): RunRequest[] {
  const triggers = requests.filter(({ kind }) => kind === 'trigger');
  triggers.sort((a, b) => (a.runId < b.runId ? -1 : 1));
  return [...requests.filter(({ kind }) => kind !== 'trigger'), ...triggers];
}
