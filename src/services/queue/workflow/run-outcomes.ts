import type { Queryable } from '../../../lib/postgres/postgres.js';
import type { RunDeliveries } from '../delivery/run-deliveries.js';
import { isTooMuch } from '../errors.js';
import { responseOf } from '../message/callbacks.js';
import type { Conclusion, FailingMessage } from '../message/conclusion.js';
import type { AttemptResult } from '../message/decide.js';
import { type ClaimedMessage, canonicalHeaders, newMessageId, type RunPlace } from '../message/message.js';
import type { QueueSettings } from '../settings.js';
import { Batcher } from '../store/batcher.js';
import type { MessageStore } from '../store/store.js';
import { callAnswer } from './call-answer.js';
import { failureBody } from './failure-body.js';
import type { AskedDelivery, FailureCallback, Run, StepPlace } from './run.js';
import type { RunBatchRows } from './run-batch-rows.js';
import type { Follow, RunChanges } from './run-changes.js';
import { endRun, tellParent } from './run-ends.js';
import { callbackMessage, failureMessage } from './run-messages.js';
import type { RunRows, ToldStep } from './run-rows.js';
import { stepsBody } from './steps-body.js';
import type { Waits } from './waits.js';

export interface OutcomeTools {
  readonly config: QueueSettings;
  readonly store: MessageStore;
  readonly rows: RunRows;
  readonly batchRows: RunBatchRows;
  readonly changes: RunChanges;
  readonly waits: Waits;
  /** Reads. */
  readonly database: Queryable;
  /** Unix time in ms. */
  readonly now: () => number;
}

/** What a call's step keeps for the time when it is answered. */
interface CallMeta {
  readonly place: StepPlace;
  readonly callback: AskedDelivery;
}

/** The texts are the hosted service's: its SDK's tests compare them. */
const NO_WORKFLOW =
  'detected a non-workflow destination for trigger/invoke. make sure you are sending the request to the correct endpoint';
const OLD_SDK = 'trigger rest api is only usable with sdk versions after v1.0.0 major version';

/** Histories that one statement brings come to no more than about so many bytes. */
const TOLD_BYTES = 16 * 1024 * 1024;

type RunMessage = ClaimedMessage & { readonly run: RunPlace };

/** What deliveries mean to the runs that they belong to. */
export class RunOutcomes implements RunDeliveries {
  private readonly told: Batcher<RunPlace, ToldStep[]>;

  constructor(private readonly tools: OutcomeTools) {
    this.told = new Batcher({
      run: (places) => tools.batchRows.toldSteps(tools.database, places),
      size: 100,
      parallel: 2,
      weigh: ({ bytes }) => bytes,
      weight: TOLD_BYTES,
      tellApart: isTooMuch,
    });
  }

  async dressed(message: ClaimedMessage): Promise<ClaimedMessage> {
    const { rows, database } = this.tools;
    const { run } = message;
    if (run === undefined || run.bytes === 0) return message;
    // base64 and JSON of ids: all of it is ASCII
    if (message.told !== undefined) return { ...message, body: Buffer.from(message.told, 'latin1') };
    if (run.role === 'step') return { ...message, body: await stepsBody(await this.told.add(run)) };
    const step = await rows.step(database, run.no, run.seq);
    return step === undefined ? message : { ...message, body: step.body };
  }

  async judged(
    message: ClaimedMessage,
    result: AttemptResult,
  ): Promise<{ result: AttemptResult; isRefused: boolean }> {
    const told = { result, isRefused: false };
    const { run } = message;
    if (run?.role === 'call') return { ...told, result: this.wholeOr(result) };
    if (run?.role !== 'step' || run.seq > 0 || result.kind !== 'response') return told;
    if (result.status < 200 || result.status > 299) return told;
    const speaks = result.headers['upstash-workflow-sdk-version'] !== undefined;
    if (speaks && result.headers['upstash-workflow-sdk'] !== undefined) return told;
    const settings = (await this.tools.rows.read(this.tools.database, run.no))?.settings;
    const refuse = (refusal: string) => ({ result: { ...result, refusal }, isRefused: true });
    if (settings?.detects && !speaks) return refuse(NO_WORKFLOW);
    if (settings?.needsSdk) return refuse(OLD_SDK);
    return told;
  }

  /** A response is never cut: what a workflow would read of half a JSON document is not what the third party said. */
  private wholeOr(result: AttemptResult): AttemptResult {
    if (result.kind !== 'response' || result.isCut !== true) return result;
    const { maxCallResponse } = this.tools.config.workflow;
    if (result.body.length >= maxCallResponse) return result;
    result.release?.();
    return { kind: 'failure', reason: 'the gateway had no room for the response' };
  }

  expire(message: ClaimedMessage, signal: AbortSignal): Promise<void> {
    return this.tools.waits.expire(message, signal);
  }

  concludes({ message: { run }, decision }: Conclusion): boolean {
    return decision.kind !== 'retry' && (run?.role === 'call' || run?.role === 'failure');
  }

  conclude(conclusion: Conclusion, signal: AbortSignal): Promise<boolean> {
    const { rows, changes, config } = this.tools;
    const message = conclusion.message as RunMessage;
    return changes.forTicket(signal, async (connection, follow) => {
      const run = await rows.lock(connection, message.run.no);
      if (!(await rows.finish(connection, conclusion, config.maxLoggedResponse))) return false;
      if (run === undefined) return true;
      if (message.run.role === 'failure') await this.noteFailureCall(connection, run, conclusion);
      else if (!run.isOver) await this.answer(connection, run, conclusion, follow);
      return true;
    });
  }

  /** A call has its answer, for good: the workflow gets it. */
  private async answer(
    connection: Queryable,
    run: Run,
    conclusion: Conclusion,
    follow: Follow,
  ): Promise<void> {
    const { rows, config, now } = this.tools;
    const message = conclusion.message as RunMessage;
    const call = await rows.step(connection, run.no, message.run.seq);
    if (call === undefined) return;
    const { place, callback } = call.meta as CallMeta;
    const body = callAnswer(conclusion, config.workflow.maxCallResponse);
    const messageId = newMessageId(now());
    const later = await rows.append(connection, run, { ...place, kind: 'fromCallback', messageId, body });
    if (later === undefined) return;
    const to = { id: messageId, seq: run.nextSeq, delayMs: 0, now: now() };
    follow.send(callbackMessage(later, callback, to, body.length));
  }

  /** Whoever was to be told that the run failed has been, or cannot be. */
  private async noteFailureCall(
    connection: Queryable,
    run: Run,
    { message, result, decision }: Conclusion,
  ): Promise<void> {
    const { failure } = run;
    if (failure === null || failure.callback?.messageId !== message.id) return;
    const { status, headers, body } = responseOf(result);
    const isMissing = headers['upstash-workflow-failure-callback-notfound']?.[0] === 'true';
    const callback: FailureCallback = {
      ...failure.callback,
      state: decision.kind === 'delivered' ? 'CALLBACK_SUCCESS' : 'CALLBACK_FAIL',
      status,
      headers: canonicalHeaders(headers),
      body: body.toString('utf8', 0, this.tools.config.maxLoggedResponse).replaceAll('\0', ''),
    };
    await this.tools.rows.setFailure(connection, run, { ...failure, callback: isMissing ? null : callback });
  }

  deadLetter(failing: FailingMessage, dlqId: string, signal: AbortSignal): Promise<boolean> {
    const { rows, changes, store } = this.tools;
    const message = failing.message as RunMessage;
    return changes.forTicket(signal, async (connection, follow) => {
      const run = await rows.lock(connection, message.run.no);
      if (run === undefined || run.isOver) {
        await rows.cancelFailing(connection, message.id);
        return false;
      }
      if (!(await store.deadLetter(message.id, dlqId, [], connection))) return false;
      await rows.nameDeadLetter(connection, dlqId, run);
      await this.fail(connection, run, failing, dlqId, follow);
      return true;
    });
  }

  private async fail(
    connection: Queryable,
    run: Run,
    { message, result }: FailingMessage,
    dlqId: string,
    follow: Follow,
  ): Promise<void> {
    const { rows, config, now } = this.tools;
    const payload = (await rows.step(connection, run.no, 0))?.body ?? Buffer.alloc(0);
    const place = { id: newMessageId(now()), seq: message.run?.seq ?? 0, delayMs: 0, now: now() };
    const told = failureMessage(run, failureBody(run, message, result, dlqId, payload), place);
    const callback: FailureCallback | null =
      told === undefined ? null : { messageId: told.id, url: told.url, state: 'CALLBACK_INPROGRESS' };
    const failure = { messageId: message.id, dlqId, callback };
    await endRun(connection, run, { state: 'RUN_FAILED', failure }, { except: message.id }, rows, follow);
    if (told !== undefined) follow.send(told);
    const tools = { rows, limits: config.workflow, now: now() };
    await tellParent(connection, run, { isFailed: true }, tools, follow);
  }
}
