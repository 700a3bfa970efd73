import { responseOf } from './callbacks.js';
import type { AttemptResult, Decision } from './decide.js';
import { type ClaimedMessage, type NewMessage, writtenSize } from './message.js';

/** An attempt's outcome with all that is written together with it. */
export interface Conclusion {
  readonly message: ClaimedMessage;
  readonly result: AttemptResult;
  readonly decision: Decision;
  readonly callbacks: readonly NewMessage[];
}

/** A message whose dead letter is to be written. */
export interface FailingMessage {
  readonly message: ClaimedMessage;
  readonly result: AttemptResult;
}

const STATES = { delivered: 'DELIVERED', retry: 'RETRY', dead: 'FAILING' } as const;

/** Bytes of bodies that are written: callbacks', and those of failed responses as far as they are kept. */
export function writtenBytes({ result, decision, callbacks }: Conclusion, maxLogged: number): number {
  const called = callbacks.reduce((sum, callback) => sum + writtenSize(callback), 0);
  if (decision.kind === 'delivered') return called;
  const { length } = responseOf(result).body;
  return called + Math.min(length, maxLogged) + (decision.kind === 'dead' ? length : 0);
}

/** Outcomes as the JSON that the statement `conclude` reads. */
export function outcomesJson(conclusions: readonly Conclusion[], maxLogged: number): string {
  return JSON.stringify(conclusions.map((conclusion) => outcomeRecord(conclusion, maxLogged)));
}

/**
 * An outcome as the statement `conclude` reads it from JSON. What is absent is null there.
 * @param maxLogged bytes of the response's body, and of its headers, that go into the log
 */
function outcomeRecord(
  { message, result, decision }: Conclusion,
  maxLogged: number,
): Record<string, unknown> {
  const outcome = { id: message.id, claims: message.claims, state: STATES[decision.kind] };
  if (decision.kind === 'delivered') return outcome;
  const { status, headers, body } = responseOf(result);
  const logged = result.kind === 'response' ? result.body : body;
  const last = decision.kind === 'dead';
  return {
    ...outcome,
    delay_ms: decision.kind === 'retry' ? decision.delayMs : undefined,
    error: result.kind === 'failure' ? result.reason : result.refusal,
    status,
    headers: last ? headers : undefined,
    body: last ? body.toString('base64') : undefined,
    log_headers: firstHeaders(headers, maxLogged),
    log_body:
      last && logged === body && body.length <= maxLogged
        ? undefined
        : logged.toString('base64', 0, maxLogged),
  };
}

/** The first of the headers, `maxBytes` of names and values together. */
export function firstHeaders(
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
