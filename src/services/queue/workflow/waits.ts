import { HttpError } from '../../../http/errors.js';
import { jsonText } from '../../../lib/json/json-text.js';
import { Mutex } from '../../../lib/mutex.js';
import type { Queryable } from '../../../lib/postgres/postgres.js';
import type { Guard } from '../intake/destination.js';
import { type ClaimedMessage, newMessageId } from '../message/message.js';
import type { TicketPublisher } from '../rabbitmq/publisher.js';
import type { QueueSettings } from '../settings.js';
import type { Run } from './run.js';
import type { Follow, RunChanges } from './run-changes.js';
import { deliveryIn, stepMessage, timerMessage } from './run-messages.js';
import { MAX_ASKED, placeOf } from './run-request.js';
import type { RunRows } from './run-rows.js';
import { type KeptWait, readWait, type WaitRequest } from './wait-request.js';
import type { Wait, WaitOfRun, WaitRows } from './wait-rows.js';

export interface WaitTools {
  readonly config: QueueSettings;
  readonly guard: Guard;
  readonly rows: RunRows;
  readonly waitRows: WaitRows;
  readonly changes: RunChanges;
  /** Reads. */
  readonly database: Queryable;
  readonly publisher: TicketPublisher;
  /** Unix time in ms. */
  readonly now: () => number;
}

/** A step that was woken. */
export interface Woken {
  readonly messageId: string;
  readonly runId: string;
  readonly createdMs: number;
  readonly wait: Wait;
}

/** How a wait ends. */
type End = { readonly data: Buffer } | { readonly isTimeOver: true };

/** A run has no room for what an event brings. */
class RunIsFull extends HttpError {
  constructor(
    readonly no: string,
    most: number,
  ) {
    super(
      'limit_reached',
      `With these data the steps of the run that waits have more than ${most} bytes (workflow.maxRunBytes).`,
    );
  }
}

/** What a run has become that somebody notifies. */
export type Notified = readonly Woken[] | 'kept' | 'ended' | 'unknown';

/** Calls of webhooks that are under way or wait, at most. */
const MAX_HOOKS = 200;
/** Runs that are woken in one transaction, and bytes that they are told by it. */
const [RUNS_AT_ONCE, BYTES_AT_ONCE] = [50, 4 * 1024 * 1024] as const;
/** After this, in ms, no further runs are woken: the reply must be in time. */
const MAX_MS = 6_000;

/**
 * Steps that wait for events. Of an event and the end of a wait's time only one ends it: both take its row, with the run
 * locked.
 */
export class Waits {
  private readonly oneHook = new Mutex();
  private hooks = 0;

  constructor(private readonly tools: WaitTools) {}

  /**
   * A webhook was called, by anybody: one at a time takes a connection to Postgres, so that calls without a token leave
   * the others to those with one.
   * @throws HttpError 429 when too many wait for that
   */
  async hook(id: string, event: string, data: Buffer, signal: AbortSignal): Promise<Notified> {
    if (this.hooks >= MAX_HOOKS)
      throw new HttpError('too_many_requests', 'Too many webhooks are called at once. Send it again.', {
        retryAfter: 1,
      });
    this.hooks += 1;
    try {
      const release = await this.oneHook.acquire(signal);
      if (release === undefined) throw new HttpError('timeout');
      return await this.notifyRun(id, event, data).finally(release);
    } finally {
      this.hooks -= 1;
    }
  }

  /**
   * A step begins to wait, or has its event already: one that was kept for it.
   * @throws HttpError 400 when the run has ended, 412 for anything that cannot be had, 503
   */
  async wait(segment: string, body: Buffer): Promise<void> {
    const { config, guard, now, changes, rows } = this.tools;
    const { maxRetries } = config.workflow;
    if (body.length > MAX_ASKED)
      throw new HttpError('limit_reached', `A wait is larger than ${MAX_ASKED} bytes.`);
    const limits = { maxRetries: Math.max(maxRetries, config.maxRetries), maxDelay: config.maxDelay };
    const request = await readWait(segment, body, { limits, guard, now: now() });
    this.demandRabbit();
    await changes.forRequest(async (connection, follow) => {
      const run = (await rows.lockOpen(connection, [request.runId])).get(request.runId);
      if (run === undefined)
        throw new HttpError(
          'invalid_request',
          `The workflow run ${request.runId} has ended, or there is none.`,
        );
      await this.begin(connection, run, request, follow);
    });
  }

  private async begin(connection: Queryable, run: Run, request: WaitRequest, follow: Follow): Promise<void> {
    const { rows, waitRows, now, config } = this.tools;
    const { event, place, kept, timeoutMs } = request;
    const { maxSteps, maxRunBytes } = config.workflow;
    if (run.nextSeq + 1 >= maxSteps)
      throw new HttpError('limit_reached', `The run has ${run.nextSeq} steps already (workflow.maxSteps).`);
    // what events bring is not known before
    if (run.stepsBytes >= maxRunBytes)
      throw new HttpError(
        'limit_reached',
        `The steps of the run have ${run.stepsBytes} bytes already (workflow.maxRunBytes).`,
      );
    const timerId = newMessageId(now());
    const meta = { event, deadlineMs: now() + timeoutMs };
    const step = { ...place, kind: 'wait' as const, messageId: timerId, body: Buffer.alloc(0), meta };
    const later = await rows.append(connection, run, step);
    // the same wait was begun before, and may have ended since
    if (later === undefined) return;
    const wait: Wait = { stepId: place.stepId, event, deadlineMs: meta.deadlineMs, timerId, kept };
    const data = await waitRows.takeNote(connection, run, event);
    if (data !== undefined) {
      await this.finish(connection, later, wait, { data }, follow);
      return;
    }
    await waitRows.add(connection, run, wait);
    follow.send(timerMessage(later, { id: timerId, seq: run.nextSeq, delayMs: timeoutMs, now: now() }));
  }

  /**
   * Wakes every step that waits for an event, in all runs but those that have no room for its data.
   * @throws HttpError 503 when there are too many for one request: those that were woken stay so, and it may be repeated
   */
  async notify(event: string, data: Buffer): Promise<readonly Woken[]> {
    const { waitRows, database } = this.tools;
    this.demandRabbit();
    this.demandRoom(data);
    const woken: Woken[] = [];
    const started = performance.now();
    const atOnce = Math.min(RUNS_AT_ONCE, Math.ceil(BYTES_AT_ONCE / Math.max(1, data.length)));
    let before: string | null = null;
    for (;;) {
      const nos: string[] = await waitRows.runsWaiting(database, event, before, atOnce);
      if (nos.length === 0) return woken;
      if (performance.now() - started > MAX_MS)
        throw new HttpError(
          'backend_unavailable',
          `${woken.length} waiting steps were woken, and there are more. Notify again.`,
        );
      woken.push(...(await this.wakeRuns(nos, event, data)));
      before = nos.at(-1) as string;
    }
  }

  /** Wakes what waits for an event in these runs: all of a run or, where there is no room for that, nothing. */
  private async wakeRuns(nos: readonly string[], event: string, data: Buffer): Promise<readonly Woken[]> {
    const { waitRows, rows, changes } = this.tools;
    const roomy = new Set(nos);
    for (;;) {
      try {
        return await changes.forRequest(async (connection, follow) => {
          const runs = await rows.lockAll(connection, [...roomy]);
          const taken = await waitRows.takeByEvent(connection, [...roomy], event);
          return this.wakeAll(connection, runs, taken, { data }, follow);
        });
      } catch (error) {
        if (!(error instanceof RunIsFull)) throw error;
        roomy.delete(error.no);
      }
    }
  }

  /** Wakes the step of a run that waits for an event; until one does, the event is kept for it. @throws HttpError 412, 429, 503 */
  async notifyRun(id: string, event: string, data: Buffer): Promise<Notified> {
    const { waitRows, rows, changes } = this.tools;
    this.demandRabbit();
    this.demandRoom(data);
    return changes.forRequest(async (connection, follow): Promise<Notified> => {
      const run = (await rows.lockOpen(connection, [id])).get(id);
      if (run === undefined) return (await rows.newest(connection, id)) === undefined ? 'unknown' : 'ended';
      const taken = await waitRows.takeFirst(connection, run.no, event);
      if (taken !== undefined)
        return this.wakeAll(connection, new Map([[run.no, run]]), [taken], { data }, follow);
      await this.keep(connection, run, event, data);
      return 'kept';
    });
  }

  private async keep(connection: Queryable, run: Run, event: string, data: Buffer): Promise<void> {
    const { waitRows, config } = this.tools;
    const { maxNotes, maxStepBytes } = config.workflow;
    const { count, bytes } = await waitRows.noted(connection, run.no);
    if (count >= maxNotes)
      throw new HttpError(
        'too_many_requests',
        `${count} events wait for the run ${run.id} already (workflow.maxNotes).`,
      );
    if (bytes + data.length > maxStepBytes)
      throw new HttpError(
        'too_many_requests',
        `With this the events that wait for the run ${run.id} have more than ${maxStepBytes} bytes (workflow.maxStepBytes).`,
      );
    await waitRows.addNote(connection, run.no, event, data);
  }

  /** The time of a wait is over. */
  expire(message: ClaimedMessage, signal: AbortSignal): Promise<void> {
    const { rows, waitRows, changes } = this.tools;
    const no = message.run?.no ?? '';
    return changes.forTicket(signal, async (connection, follow) => {
      const run = await rows.lock(connection, no);
      if (!(await rows.finishTimer(connection, message))) return;
      const taken = await waitRows.takeByTimer(connection, no, message.id);
      if (run === undefined || run.isOver || taken === undefined) return;
      await this.finish(connection, run, taken.wait, { isTimeOver: true }, follow);
    });
  }

  /** Every step that waits for an event. */
  waiting(event: string): AsyncIterable<WaitOfRun> {
    return this.tools.waitRows.waiting(this.tools.database, event);
  }

  private async wakeAll(
    connection: Queryable,
    runs: Map<string, Run>,
    taken: readonly WaitOfRun[],
    end: End,
    follow: Follow,
  ): Promise<Woken[]> {
    const woken: Woken[] = [];
    const later = new Map(runs);
    for (const { no, wait } of taken) {
      const run = later.get(no);
      if (run === undefined || run.isOver) continue;
      const done = await this.finish(connection, run, wait, end, follow);
      if (done === undefined) continue;
      later.set(no, done.later);
      woken.push({ messageId: done.messageId, runId: run.id, createdMs: run.createdMs, wait });
    }
    return woken;
  }

  /**
   * Appends the end of a wait to its run.
   * @returns the run with it; `undefined`: the step has a result already
   * @throws RunIsFull
   */
  private async finish(
    connection: Queryable,
    run: Run,
    { kept, event }: Wait,
    end: End,
    follow: Follow,
  ): Promise<{ later: Run; messageId: string } | undefined> {
    const { rows, config, now } = this.tools;
    const messageId = newMessageId(now());
    const { maxRunBytes } = config.workflow;
    const demandRoomFor = (bytes: number) => {
      if (run.stepsBytes + bytes > maxRunBytes) throw new RunIsFull(run.no, maxRunBytes);
    };
    // what is too large need not be made first, which takes time with the run locked
    if ('data' in end) demandRoomFor(Math.ceil(end.data.length / 3) * 4);
    const body = Buffer.from(await jsonText(endedStep(kept, event, end)));
    // that its time is over ends a wait in any case
    if ('data' in end) demandRoomFor(body.length);
    const later = await rows.append(connection, run, {
      ...placeOf(kept.step),
      kind: 'result',
      messageId,
      body,
    });
    if (later === undefined) return undefined;
    const place = { id: messageId, seq: run.nextSeq, delayMs: 0, now: now() };
    follow.send(stepMessage(later, deliveryIn(later, kept.asked), place, config.workflow.lazyBytes));
    return { later, messageId };
  }

  private demandRabbit(): void {
    const reason = this.tools.publisher.unavailable;
    if (reason !== undefined) throw new HttpError('backend_unavailable', `${reason}.`);
  }

  /** @throws HttpError 412 */
  private demandRoom(data: Buffer): void {
    const { maxStepBytes } = this.tools.config.workflow;
    if (data.length > maxStepBytes)
      throw new HttpError(
        'limit_reached',
        `Data of ${data.length} bytes are larger than the limit of ${maxStepBytes} bytes (workflow.maxStepBytes).`,
      );
  }
}

/** The step as the workflow is told it. */
function endedStep({ step }: KeptWait, event: string, end: End): Record<string, unknown> {
  return 'data' in end
    ? { ...step, out: end.data.toString('base64'), waitTimeout: false, waitEventId: event }
    : { ...step, waitTimeout: true, waitEventId: event };
}
