/** Only what hangs takes so long, however slow the machine is, in ms; below the time that jest gives a test. */
export const HANGS_MS = 90_000;

/**
 * What is promised within 1 to 3 s may take so long on a busy machine, in ms. Not longer: after 10 s a request is cut off
 * with another answer.
 */
export const PROMPT_MS = 8_000;

/** The first pause between two looks, the longest one, in ms, and the share of the time waited that one takes. */
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS, PAUSE_SHARE] = [25, 500, 0.05];
/** A look may take so much of the time: jest writes out all that a failed assertion was given, each time. */
const LOOK_SHARE = 0.2;

/** Repeats `check` until it does not throw, at most `timeoutMs`; then throws what it threw last. */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = HANGS_MS): Promise<T> {
  const begin = performance.now();
  for (;;) {
    const looked = performance.now();
    try {
      return await check();
    } catch (error) {
      const now = performance.now();
      if (now > begin + timeoutMs) throw error;
      const pause = Math.max(FIRST_PAUSE_MS, (now - begin) * PAUSE_SHARE, (now - looked) / LOOK_SHARE);
      await new Promise((resolve) => setTimeout(resolve, Math.min(LONGEST_PAUSE_MS, pause)));
    }
  }
}
