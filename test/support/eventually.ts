/** Only what hangs takes so long, however slow the machine is, in ms; below the time that jest gives a test. */
export const HANGS_MS = 90_000;

/**
 * What is promised within 1 to 3 s may take so long on a busy machine, in ms. Not longer: after 10 s a request is cut off
 * with another answer.
 */
export const PROMPT_MS = 8_000;

/** Repeats `check` until it does not throw, at most `timeoutMs`; then throws what it threw last. */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = HANGS_MS): Promise<T> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }
}
