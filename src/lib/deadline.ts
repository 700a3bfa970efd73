export interface Deadline {
  /** Aborts when the time is over or one of the parents does. */
  readonly signal: AbortSignal;
  /** The time is over, whether or not a parent aborted as well. */
  readonly isLate: boolean;
  /** Gives timer and listeners back. */
  release(): void;
}

/**
 * Like `AbortSignal.any` with `AbortSignal.timeout`, which on Node 20 may be collected as garbage while somebody
 * listens, and then never fire.
 */
export function deadlineOf(ms: number | undefined, ...parents: readonly AbortSignal[]): Deadline {
  const controller = new AbortController();
  const abort = () => controller.abort();
  let isLate = false;
  const expire = () => {
    isLate = true;
    abort();
  };
  const timer = ms === undefined ? undefined : setTimeout(expire, ms);
  for (const parent of parents) {
    if (parent.aborted) abort();
    else parent.addEventListener('abort', abort);
  }
  return {
    signal: controller.signal,
    get isLate() {
      return isLate;
    },
    release: () => {
      clearTimeout(timer);
      for (const parent of parents) parent.removeEventListener('abort', abort);
    },
  };
}
