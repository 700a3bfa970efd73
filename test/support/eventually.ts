/** Only what hangs takes so long, however slow the machine is, in ms; below the time that jest gives a test. */
export const HANGS_MS = 90_000;

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
