import type { AttemptResult } from './decide.js';
import {
  type CallbackTarget,
  type ClaimedMessage,
  canonicalHeaders,
  type MessageDetails,
  type NewMessage,
  newMessageId,
} from './message.js';

/** The JSON that a callback delivers; the misspelled field is the contract's. */
export interface CallbackBody {
  /** Of the destination's response; 0 when none came, and then `body` says why. */
  readonly status: number;
  readonly header: Readonly<Record<string, readonly string[]>>;
  /** Base64. */
  readonly body: string;
  readonly retried: number;
  readonly maxRetries: number;
  /** Failure callback only. */
  readonly dlqId?: string;
  readonly sourceMessasgeId: string;
  readonly sourceMessageId: string;
  readonly topicName?: string;
  readonly endpointName?: string;
  readonly scheduleId?: string;
  readonly callerIP?: string;
  readonly url: string;
  readonly method: string;
  readonly sourceHeader: Readonly<Record<string, readonly string[]>>;
  /** Base64. */
  readonly sourceBody: string;
  /** Unix time in ms, as text. */
  readonly notBefore: string;
  readonly createdAt: string;
}

/** The callback of an attempt: one after each (the last has a 2xx status or `retried == maxRetries`). @param now Unix time in ms */
export function callbackMessages(message: ClaimedMessage, result: AttemptResult, now: number): NewMessage[] {
  if (message.callback === null) return [];
  return [callbackMessage(message, message.callback, callbackBody(message, result), now)];
}

/** What is sent once when a message is dead. @param now Unix time in ms */
export function failureCallbackMessages(
  message: ClaimedMessage,
  result: AttemptResult,
  dlqId: string,
  now: number,
): NewMessage[] {
  if (message.failureCallback === null) return [];
  return [callbackMessage(message, message.failureCallback, callbackBody(message, result, dlqId), now)];
}

export function callbackBody(message: ClaimedMessage, result: AttemptResult, dlqId?: string): CallbackBody {
  const { status, headers, body } = responseOf(result);
  const { topicName, endpointName, scheduleId } = message.details;
  return {
    status,
    header: canonicalHeaders(headers),
    body: body.toString('base64'),
    retried: message.attempt,
    maxRetries: message.maxRetries,
    ...(dlqId === undefined ? {} : { dlqId }),
    sourceMessasgeId: message.id,
    sourceMessageId: message.id,
    ...(topicName === undefined ? {} : { topicName }),
    ...(endpointName === undefined ? {} : { endpointName }),
    ...(scheduleId === undefined ? {} : { scheduleId }),
    ...(message.callerIp === null ? {} : { callerIP: message.callerIp }),
    url: message.url,
    method: message.method,
    sourceHeader: Object.fromEntries(Object.entries(message.headers).map(([name, value]) => [name, [value]])),
    sourceBody: message.body.toString('base64'),
    notBefore: String(message.notBefore),
    createdAt: String(message.createdAt),
  };
}

/** A failure without a response, told as one: status 0, no headers, the reason as body. */
export function responseOf(
  result: AttemptResult,
): Omit<Extract<AttemptResult, { kind: 'response' }>, 'kind'> {
  if (result.kind === 'failure') return { status: 0, headers: {}, body: Buffer.from(result.reason) };
  const { refusal } = result;
  return refusal === undefined ? result : { ...result, body: Buffer.from(refusal) };
}

function callbackMessage(
  source: ClaimedMessage,
  target: CallbackTarget,
  body: CallbackBody,
  now: number,
): NewMessage {
  return {
    id: newMessageId(now),
    prefix: source.prefix,
    url: target.url,
    method: target.method,
    headers: target.headers,
    body: Buffer.from(JSON.stringify(body)),
    maxRetries: target.maxRetries,
    timeoutMs: target.timeoutMs,
    delayMs: target.delayMs,
    notBefore: now + target.delayMs,
    createdAt: now,
    callback: null,
    failureCallback: null,
    queueName: source.queueName,
    callerIp: source.callerIp,
    callbackOf: source.queueName === null ? null : source.id,
    deduplicationKey: null,
    details: detailsOf(source, target),
  };
}

/**
 * A callback is found under its message's labels, group and schedule. Its body holds the message's own body and headers: where
 * something of these is not to be seen, it is not either, nor are headers of the callback that have such a name.
 */
function detailsOf({ details }: ClaimedMessage, { retryDelay }: CallbackTarget): MessageDetails {
  const { topicName, endpointName, scheduleId, labels, redact } = details;
  return {
    ...(topicName === undefined ? {} : { topicName }),
    ...(endpointName === undefined ? {} : { endpointName }),
    ...(scheduleId === undefined ? {} : { scheduleId }),
    ...(labels === undefined ? {} : { labels }),
    ...(retryDelay === undefined ? {} : { retryDelay }),
    ...(redact === undefined ? {} : { redact: { ...redact, body: true } }),
  };
}
