import { responseOf } from './callbacks.js';
import type { AttemptResult, Decision } from './decide.js';
import type { ClaimedMessage, NewMessage } from './message.js';

/** An attempt's outcome with all that is written together with it. */
export interface Conclusion {
  readonly message: ClaimedMessage;
  readonly result: AttemptResult;
  readonly decision: Decision;
  readonly callbacks: readonly NewMessage[];
}

/** A message whose dead letter is to be written. */
export interface DyingMessage {
  readonly message: ClaimedMessage;
  readonly result: AttemptResult;
}

const STATES = { delivered: 'DELIVERED', retry: 'RETRY', dead: 'FAILING' } as const;

/** Bytes of a failed response that are written: the log keeps the beginning of each, the message all of the last. */
export function writtenBytes({ result, decision }: Conclusion, maxLogged: number): number {
  if (decision.kind === 'delivered') return 0;
  const { length } = responseOf(result).body;
  return Math.min(length, maxLogged) + (decision.kind === 'dead' ? length : 0);
}

/**
 * An outcome as the statement `conclude` reads it from JSON. What is absent is null there.
 * @param maxLogged bytes of the response's body, and of its headers, that go into the log
 */
export function outcomeRecord(
  { message, result, decision }: Conclusion,
  maxLogged: number,
): Record<string, unknown> {
  const outcome = { id: message.id, claims: message.claims, state: STATES[decision.kind] };
  if (decision.kind === 'delivered') return outcome;
  const { status, headers, body } = responseOf(result);
  const last = decision.kind === 'dead';
  return {
    ...outcome,
    delay_ms: decision.kind === 'retry' ? decision.delayMs : undefined,
    error: result.kind === 'failure' ? result.reason : undefined,
    status,
    headers: last ? headers : undefined,
    body: last ? body.toString('base64') : undefined,
    log_headers: firstHeaders(headers, maxLogged),
    log_body: last && body.length <= maxLogged ? undefined : body.toString('base64', 0, maxLogged),
  };
}

/** The first of the headers, `maxBytes` of names and values together. */
function firstHeaders(
  headers: Readonly<Record<string, readonly string[]>>,
  maxBytes: number,
): Record<string, readonly string[]> {
  const kept: Record<string, readonly string[]> = {};
  let room = maxBytes;
  for (const [name, values] of Object.entries(headers)) {
    room -= values.reduce((sum, value) => sum + value.length, name.length);
    if (room < 0) break;
    kept[name] = values;
  }
  return kept;
}
