import type { AttemptResult, Decision } from './decide.js';
import {
  type CallbackTarget,
  type ClaimedMessage,
  canonicalHeaderName,
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
  readonly url: string;
  readonly method: string;
  readonly sourceHeader: Readonly<Record<string, readonly string[]>>;
  /** Base64. */
  readonly sourceBody: string;
  /** Unix time in ms, as text. */
  readonly notBefore: string;
  readonly createdAt: string;
}

/**
 * The messages that an attempt's outcome brings about: the callback after every attempt (the last one has a 2xx status
 * or `retried == maxRetries`), the failure callback once the message is dead.
 * @param dlqId id of the dead letter; given when `decision` is `dead`
 * @param now Unix time in ms
 */
export function callbackMessages(
  message: ClaimedMessage,
  result: AttemptResult,
  decision: Decision,
  dlqId: string | undefined,
  now: number,
): NewMessage[] {
  const messages: NewMessage[] = [];
  if (message.callback !== null)
    messages.push(callbackMessage(message, message.callback, callbackBody(message, result), now));
  if (decision.kind === 'dead' && message.failureCallback !== null)
    messages.push(
      callbackMessage(message, message.failureCallback, callbackBody(message, result, dlqId), now),
    );
  return messages;
}

export function callbackBody(message: ClaimedMessage, result: AttemptResult, dlqId?: string): CallbackBody {
  const { status, headers, body } = responseOf(result);
  return {
    status,
    header: Object.fromEntries(
      Object.entries(headers).map(([name, values]) => [canonicalHeaderName(name), values]),
    ),
    body: body.toString('base64'),
    retried: message.attempt,
    maxRetries: message.maxRetries,
    ...(dlqId === undefined ? {} : { dlqId }),
    sourceMessasgeId: message.id,
    sourceMessageId: message.id,
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
  return result.kind === 'response' ? result : { status: 0, headers: {}, body: Buffer.from(result.reason) };
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
  };
}
