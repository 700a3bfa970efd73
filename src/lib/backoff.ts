export interface BackoffOptions {
  /** First pause in ms. */
  initialMs: number;
  /** No pause is longer, in ms. */
  maxMs: number;
  /** Each pause is this many times the one before. */
  factor: number;
  /** 0..1: the part of a pause that is random, so that many clients do not come back at once. */
  jitter: number;
}

export const DEFAULT_BACKOFF: BackoffOptions = { initialMs: 100, maxMs: 5_000, factor: 2, jitter: 0.2 };

/**
 * Pause in ms before attempt `attempt` (0 = the first repetition).
 * @param random a number in [0, 1); an argument so that a test can fix it
 */
export function backoffDelay(attempt: number, options = DEFAULT_BACKOFF, random = Math.random()): number {
  const full = Math.min(options.maxMs, options.initialMs * options.factor ** Math.max(0, attempt));
  return Math.round(full * (1 - options.jitter * random));
}
