import { STATUS_CODES } from 'node:http';
import { parseJsonBody } from '../../../http/body.js';
import { jsonText } from '../../../lib/json/json-text.js';
import { type HeaderLists, redacted, shownHeaders, shownLists } from '../intake/redaction.js';
import { canonicalHeaders, type Redaction } from '../message/message.js';
import type { RunSettings } from './run.js';
import { messageState, type ShownStep } from './run-groups.js';
import type {
  LoggedCall,
  LoggedChild,
  LoggedError,
  LoggedMessage,
  LoggedRun,
  RunRecord,
} from './run-record.js';

type Fields = Record<string, unknown>;

/** What was stored of a step, as far as it is shown. */
export interface StepBodies {
  /** The result as it was posted; of a step that sleeps beside others, its plan. */
  readonly posted: Buffer | undefined;
  readonly call: LoggedCall | undefined;
  readonly answer: Buffer | undefined;
  readonly child: LoggedChild | undefined;
}

/** The beginning of a run's log: all but its steps and its result. Fields that are `undefined` are left out. */
export function runFields({ run, messages, errors, lastAnswer }: RunRecord): Fields {
  const { failure, invoker, labels } = run;
  return {
    workflowRunId: run.id,
    workflowUrl: run.url,
    workflowState: run.state,
    workflowRunCreatedAt: run.createdMs,
    workflowRunCompletedAt: run.endedMs ?? undefined,
    label: labels[0],
    labels: labels.length === 0 ? undefined : labels,
    dlqId: run.hasDeadLetter ? failure?.dlqId : undefined,
    invoker:
      invoker === null
        ? undefined
        : {
            workflowRunId: invoker.runId,
            workflowUrl: invoker.url,
            workflowRunCreatedAt: invoker.createdMs,
          },
    failureFunction: failureFields(run, messages, errors, lastAnswer),
  };
}

function failureFields(
  { failure }: LoggedRun,
  messages: readonly LoggedMessage[],
  errors: readonly LoggedError[],
  lastAnswer: LoggedError | undefined,
): Fields | undefined {
  const callback = failure?.callback;
  if (failure == null || callback == null) return undefined;
  const message = messages.find(({ id }) => id === callback.messageId);
  const failed = lastAnswer ?? errors.findLast(({ messageId }) => messageId === failure.messageId);
  return {
    messageId: callback.messageId,
    url: callback.url,
    state: callback.state,
    failStatus: failed?.status,
    failHeaders: failed && canonicalHeaders(failed.headers),
    failResponse: failed && responseText(failed),
    dlqId: failure.dlqId,
    errors: errorsOf(callback.messageId, errors),
    responseStatus: callback.status,
    responseHeaders: callback.headers,
    responseBody: callback.body,
    nextDeliveryTime: message?.state === 'RETRY' ? message.dueMs : undefined,
  };
}

/** Of failed attempts; `undefined` when there are none. */
function errorsOf(id: string, errors: readonly LoggedError[]): Fields[] | undefined {
  const own = errors.filter(({ messageId }) => messageId === id);
  if (own.length === 0) return undefined;
  return own.map((error) => ({
    error: error.error ?? `${error.status} ${STATUS_CODES[error.status] ?? ''}`.trim(),
    status: error.status,
    headers: canonicalHeaders(error.headers),
    body: error.body.toString('utf8'),
    time: error.timeMs,
  }));
}

const responseText = ({ body, error }: LoggedError) =>
  body.length === 0 && error !== null ? error : body.toString('utf8');

/** A delivery that is to execute what comes next. */
export function nextFields(message: LoggedMessage, { run, errors }: RunRecord): Fields {
  const own = errorsOf(message.id, errors);
  const names = errors.findLast(({ messageId }) => messageId === message.id)?.headers;
  return {
    messageId: message.id,
    stepName: names?.['upstash-error-step-name']?.[0],
    state: messageState(message),
    retries: message.maxRetries,
    retryDelay: run.settings.delivery.retryDelay,
    errors: own,
  };
}

export async function stepFields(step: ShownStep, bodies: StepBodies, record: RunRecord): Promise<Fields> {
  const { first, result, message } = step;
  const { settings } = record.run;
  const { delivery } = settings;
  const isStart = first.kind === 'init';
  return {
    stepId: isStart ? undefined : step.stepId,
    stepName: (result ?? first).name,
    stepType: (result ?? first).type,
    callType: callTypeOf(step),
    messageId: (result ?? first).messageId,
    state: step.state,
    concurrent: first.concurrent,
    createdAt: (result ?? first).createdMs,
    retries: step.callMessage?.maxRetries ?? delivery.maxRetries,
    retryDelay: delivery.retryDelay,
    headers: isStart
      ? { ...shownHeaders(delivery.headers, delivery.redact), 'Upstash-Workflow-Sdk-Version': ['1'] }
      : {},
    ...(isStart
      ? { out: shown(bodies.posted, delivery.redact) }
      : await postedFields(step, bodies, settings)),
    ...callFields(bodies.call, delivery.redact),
    ...(await answerFields(bodies.answer, bodies.call?.details?.redact ?? delivery.redact)),
    ...childFields(step, bodies.child),
    errors: message && errorsOf(message.id, record.errors),
  };
}

function callTypeOf({ result, call, answer }: ShownStep): string {
  if (result !== undefined || call === undefined) return 'step';
  return answer === undefined ? 'toCallback' : 'fromCallback';
}

/** What stands in the step as it was posted. A type that a client gives an integer for is one here: Go reads nothing else. */
async function postedFields(
  { result, wait, first }: ShownStep,
  { posted }: StepBodies,
  { delivery }: RunSettings,
): Promise<Fields> {
  const value = posted === undefined ? {} : ((await parseJsonBody(posted)) as Fields);
  const { out, sleepFor, sleepUntil, waitEventId, waitTimeout } = value;
  const seconds = sleepFor === undefined ? undefined : secondsOf(sleepFor);
  const isWait = wait !== undefined || waitEventId !== undefined;
  return {
    out: result === undefined || out == null ? undefined : hidden(await textOf(out), delivery.redact),
    sleepFor: seconds,
    sleepUntil: typeof sleepUntil === 'number' ? Math.ceil(sleepUntil) : undefined,
    waitEventId: isWait
      ? (wait?.event ?? (typeof waitEventId === 'string' ? waitEventId : undefined))
      : undefined,
    waitTimeoutDeadline: wait?.deadlineMs,
    waitTimeoutDuration: wait && `${Math.max(0, Math.round((wait.deadlineMs - first.createdMs) / 1_000))}s`,
    waitTimeout: isWait ? waitTimeout === true : undefined,
  };
}

const textOf = (out: unknown) => (typeof out === 'string' ? out : jsonText(out));

/** Characters of the longest duration that somebody writes. */
const DURATION = 200;

/** Python and JS name a duration as a number of seconds or with units. */
function secondsOf(duration: unknown): number | undefined {
  const units = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800, mo: 2_592_000, y: 31_536_000 } as const;
  let seconds = 0;
  const parts = String(duration)
    .slice(0, DURATION)
    .matchAll(/(\d+(?:\.\d+)?)(mo|[smhdwy])?/g);
  for (const [, count, unit] of parts) seconds += Number(count) * units[(unit ?? 's') as keyof typeof units];
  return Number.isFinite(seconds) ? Math.ceil(seconds) : undefined;
}

function callFields(call: LoggedCall | undefined, ofRun: Redaction | undefined): Fields {
  if (call === undefined) return {};
  const redact = call.details?.redact ?? ofRun;
  return {
    callUrl: call.url,
    callMethod: call.method,
    callHeaders: shownHeaders(call.headers, redact),
    callBody: shown(call.body, redact),
  };
}

async function answerFields(answer: Buffer | undefined, redact: Redaction | undefined): Promise<Fields> {
  if (answer === undefined) return {};
  const { status, header, body } = (await parseJsonBody(answer)) as Fields;
  return {
    callResponseStatus: status,
    callResponseHeaders: header && shownLists(header as HeaderLists, redact),
    callResponseBody: shown(Buffer.from(String(body ?? ''), 'base64'), redact),
  };
}

/** The end of a child that could not be told any more stands in its own row alone. */
function childFields(step: ShownStep, child: LoggedChild | undefined): Fields {
  if (step.invocation === undefined) return {};
  const { runId, createdMs, url } = step.invocation.meta as { runId: string; createdMs: number; url: string };
  const delivery = child?.settings.delivery;
  const invoked = {
    invokedWorkflowRunId: runId,
    invokedWorkflowUrl: url,
    invokedWorkflowCreatedAt: createdMs,
    invokedWorkflowRunBody: child?.payload == null ? undefined : shown(child.payload, delivery?.redact),
    invokedWorkflowRunHeaders: delivery && shownHeaders(delivery.headers, delivery.redact),
  };
  if (step.result !== undefined || child === undefined || child.state === 'RUN_STARTED') return invoked;
  const out = {
    body: child.result === null ? undefined : shown(child.result, delivery?.redact),
    isFailed: child.state === 'RUN_FAILED',
    isCanceled: child.state === 'RUN_CANCELED',
  };
  return { ...invoked, out: JSON.stringify(out), state: 'STEP_SUCCESS' };
}

const hidden = (text: string, redact: Redaction | undefined) =>
  redact?.body === true ? redacted(text) : text;

export const shown = (body: Buffer | undefined, redact: Redaction | undefined) =>
  body && (redact?.body === true ? redacted(body) : body.toString('utf8'));
