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

/** An outcome as the statement `conclude` reads it from JSON. What is absent is null there. */
export function outcomeRecord({ message, result, decision }: Conclusion): Record<string, unknown> {
  const outcome = { id: message.id, claims: message.claims, state: STATES[decision.kind] };
  if (decision.kind === 'delivered') return outcome;
  const { status, headers, body } = responseOf(result);
  return {
    ...outcome,
    delay_ms: decision.kind === 'retry' ? decision.delayMs : undefined,
    error: result.kind === 'failure' ? result.reason : undefined,
    status,
    headers,
    body: body.toString('base64'),
  };
}
