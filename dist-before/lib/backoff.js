export const DEFAULT_BACKOFF = { initialMs: 100, maxMs: 5_000, factor: 2, jitter: 0.2 };
/**
 * Pause in ms before attempt `attempt` (0 = the first repetition).
 * @param random a number in [0, 1); an argument so that a test can fix it
 */
export function backoffDelay(attempt, options = DEFAULT_BACKOFF, random = Math.random()) {
    const full = Math.min(options.maxMs, options.initialMs * options.factor ** Math.max(0, attempt));
    return Math.round(full * (1 - options.jitter * random));
}
//# sourceMappingURL=backoff.js.map