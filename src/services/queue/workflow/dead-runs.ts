import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { HttpError } from '../../../http/errors.js';
import type { Queryable } from '../../../lib/postgres/postgres.js';
import type { Guard } from '../intake/destination.js';
import type { DailyUsage } from '../intake/usage.js';
import type { AttemptResult } from '../message/decide.js';
import { newMessageId } from '../message/message.js';
import type { TicketPublisher } from '../rabbitmq/publisher.js';
import type { QueueSettings } from '../settings.js';
import type { DeadLetterStore } from '../store/dead-letter-store.js';
import type { Copied, CopiedStep, DeadRunRows } from './dead-run-rows.js';
import { failureBody } from './failure-body.js';
import type { AskedDelivery, FailureCallback, Run, RunSettings } from './run.js';
import type { Follow, RunChanges } from './run-changes.js';
import { callbackMessage, failureMessage, stepMessage } from './run-messages.js';
import { type Overrides, readOverrides } from './run-request.js';
import type { RunRows } from './run-rows.js';

export interface DeadRunTools {
  readonly config: QueueSettings;
  readonly guard: Guard;
  readonly rows: RunRows;
  readonly deadRunRows: DeadRunRows;
  readonly deadLetters: DeadLetterStore;
  readonly changes: RunChanges;
  readonly publisher: TicketPublisher;
  readonly usage: DailyUsage;
  /** Unix time in ms. */
  readonly now: () => number;
}

/** A run that was made of one that failed. */
export interface MadeRun {
  readonly runId: string;
  readonly createdMs: number;
}

/** Runs that failed: they are begun again, from the step that failed or from the start, as new runs. */
export class DeadRuns {
  constructor(private readonly tools: DeadRunTools) {}

  /**
   * Makes a run of the one behind a dead letter, which goes in the same transaction: a second call finds none.
   * @param what of it is taken over; the rest is done again
   * @param headers instructions that override those of the run
   * @returns `undefined`: there is no such dead letter of a run
   * @throws HttpError 400, 412, 503
   */
  async again(dlqId: string, what: Copied, headers: IncomingHttpHeaders): Promise<MadeRun | undefined> {
    const { changes, config, guard, now, usage } = this.tools;
    const { maxRetries } = config.workflow;
    const limits = { maxRetries: Math.max(maxRetries, config.maxRetries), maxDelay: config.maxDelay };
    const overrides = readOverrides(headers, { limits, guard, now: now() });
    this.demandRabbit();
    const made = await changes.forRequest(async (connection, follow) => {
      const old = await this.locked(connection, dlqId);
      return old && this.make(connection, old, dlqId, what, overrides, follow);
    });
    if (made !== undefined) await usage.charge(1);
    return made;
  }

  /**
   * Calls the failure function of a run again, which could not be called.
   * @returns `undefined`: there is no such dead letter of a run
   * @throws HttpError 400 when it was called, is being called, or there is none
   */
  async callFailureFunction(dlqId: string): Promise<MadeRun | undefined> {
    const { changes, deadLetters, rows, now, usage } = this.tools;
    this.demandRabbit();
    const page = { count: 1, latestFirst: false, after: undefined };
    const [letter] = (await deadLetters.list({ ids: [dlqId] }, page)).letters;
    const called = await changes.forRequest(async (connection, follow) => {
      const run = await this.locked(connection, dlqId);
      if (run === undefined || letter === undefined) return undefined;
      const { failure } = run;
      if (failure?.callback?.state !== 'CALLBACK_FAIL')
        throw new HttpError(
          'invalid_request',
          `The failure function of the run ${run.id} has not failed (${failure?.callback?.state ?? 'there is none'}).`,
        );
      const payload = (await rows.step(connection, run.no, 0))?.body ?? Buffer.alloc(0);
      const result: AttemptResult =
        letter.status === 0
          ? { kind: 'failure', reason: letter.error ?? '' }
          : { kind: 'response', status: letter.status, headers: letter.headers, body: letter.body };
      const body = failureBody(run, letter.message, result, dlqId, payload);
      const place = { id: newMessageId(now()), seq: letter.message.run?.seq ?? 0, delayMs: 0, now: now() };
      const told = failureMessage(run, body, place);
      if (told === undefined)
        throw new HttpError('invalid_request', `The run ${run.id} has no failure function.`);
      const callback: FailureCallback = { messageId: told.id, url: told.url, state: 'CALLBACK_INPROGRESS' };
      await rows.setFailure(connection, run, { ...failure, callback });
      follow.send(told);
      return { runId: run.id, createdMs: run.createdMs };
    });
    if (called !== undefined) await usage.charge(1);
    return called;
  }

  private async locked(connection: Queryable, dlqId: string): Promise<Run | undefined> {
    const no = await this.tools.deadRunRows.lockLetter(connection, dlqId);
    return no === undefined ? undefined : this.tools.rows.lock(connection, no);
  }

  private async make(
    connection: Queryable,
    old: Run,
    dlqId: string,
    what: Copied,
    overrides: Overrides,
    follow: Follow,
  ): Promise<MadeRun> {
    const { rows, deadRunRows, now } = this.tools;
    const settings = settingsWith(old.settings, overrides);
    const given = {
      ...{
        id: `wfr_${randomBytes(16).toString('base64url')}`,
        url: old.url,
        settings,
        callerIp: old.callerIp,
      },
      labels: overrides.labels.length === 0 ? old.labels : overrides.labels,
      // whoever had started it was told that it failed
      ...{ invoker: null, createdMs: now(), awaitsSdk: false },
    };
    const fresh = await rows.create(connection, given);
    if (fresh === undefined) throw new Error(`there is a run ${given.id}`);
    const steps = await deadRunRows.copySteps(connection, old, fresh, what);
    const told = steps.filter(({ kind }) => kind !== 'toCallback' && kind !== 'fromCallback');
    const run = {
      ...fresh,
      nextSeq: (steps.at(-1)?.seq ?? 0) + 1,
      stepsBytes: told.reduce((sum, { bytes }) => sum + bytes, 0),
    };
    for (const step of stepsToDeliver(steps))
      await this.deliver(connection, run, step, steps, overrides, follow);
    await deadRunRows.removeLetter(connection, dlqId);
    return { runId: run.id, createdMs: run.createdMs };
  }

  private async deliver(
    connection: Queryable,
    run: Run,
    step: CopiedStep,
    steps: readonly CopiedStep[],
    { delayMs }: Overrides,
    follow: Follow,
  ): Promise<void> {
    const { deadRunRows, config, now } = this.tools;
    const place = { id: newMessageId(now()), seq: step.seq, delayMs, now: now() };
    // a repeat of what made the step finds the message that is under way
    await deadRunRows.renameMessage(connection, run, step.seq, place.id);
    if (step.kind !== 'fromCallback') {
      follow.send(stepMessage(run, run.settings.delivery, place, config.workflow.lazyBytes));
      return;
    }
    const call = steps.find(({ kind, stepId }) => kind === 'toCallback' && stepId === step.stepId);
    if (call === undefined) throw new Error(`the answer to step ${step.stepId} of run ${run.no} has no call`);
    const { callback } = call.meta as { readonly callback: AskedDelivery };
    follow.send(callbackMessage(run, callback, place, step.bytes));
  }

  private demandRabbit(): void {
    const reason = this.tools.publisher.unavailable;
    if (reason !== undefined) throw new HttpError('backend_unavailable', `${reason}.`);
  }
}

/**
 * What a run goes on with: answers of third parties that the workflow has not turned into a result, branches without one,
 * or else the last step.
 */
export function stepsToDeliver(steps: readonly CopiedStep[]): CopiedStep[] {
  const results = new Set(steps.filter(({ kind }) => kind === 'result').map(({ stepId }) => stepId));
  const answers = steps.filter(({ kind, stepId }) => kind === 'fromCallback' && !results.has(stepId));
  const answered = new Set(answers.map(({ stepId }) => stepId));
  const branches = steps.filter(
    ({ kind, targetStep }) =>
      kind === 'plan' && targetStep !== null && !results.has(targetStep) && !answered.has(targetStep),
  );
  if (answers.length + branches.length > 0) return [...answers, ...branches];
  return steps.filter(({ kind }) => kind === 'init' || kind === 'result' || kind === 'plan').slice(-1);
}

function settingsWith(settings: RunSettings, { asked, failure }: Overrides): RunSettings {
  const said = Object.fromEntries(asked.said.map((key) => [key, asked.delivery[key]]));
  return {
    ...settings,
    delivery: { ...settings.delivery, ...said },
    failure: failure ?? settings.failure,
  };
}
