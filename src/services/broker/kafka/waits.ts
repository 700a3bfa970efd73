import { endedWithin } from '../../../lib/within.js';

/**
 * Pause between two tries at a partition whose leader is not where it was said to be, or not ready, in ms. Kafka names the
 * leaders of a new topic before they have opened their logs: 0.5 s for 20 partitions on one busy core.
 */
export const LEADER_PAUSE_MS = 100;

/**
 * What `first` resolves to; when it fails, or says nothing for `ms`, what comes first of it and `second`.
 * @throws what `first` rejects with, when both do
 */
export async function withSecond<T>(first: Promise<T>, ms: number, second: () => Promise<T>): Promise<T> {
  const isThere = first.then(
    () => true,
    () => false,
  );
  await endedWithin(ms, isThere);
  if (await Promise.race([isThere, false])) return first;
  return Promise.any([first, second()]).catch(({ errors }: AggregateError) => {
    throw errors[0];
  });
}

/** Resolves when `work` has, or when `signal` aborts. @throws what `work` rejects with before that */
export async function untilAborted(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  let stop: () => void = () => {};
  const aborted = new Promise<void>((resolve) => {
    stop = resolve;
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A sleep that can be ended early; one at a time. */
export class Sleep {
  private wake: () => void = () => {};

  async sleep(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.wake = resolve;
      timer = setTimeout(resolve, ms);
    });
    clearTimeout(timer);
  }

  end(): void {
    this.wake();
  }
}

/** Tells those who wait that something has changed. */
export class Changes {
  private readonly waiting = new Set<() => void>();

  tell(): void {
    for (const wake of [...this.waiting]) wake();
  }

  /** Resolves at the next change or when `until` aborts. */
  next(until: AbortSignal): Promise<void> {
    const change = this.signal(until);
    return new Promise((resolve) => {
      const end = () => {
        change.release();
        resolve();
      };
      if (change.signal.aborted) end();
      else change.signal.addEventListener('abort', end, { once: true });
    });
  }

  /** Aborts at the next change or with `until`; to be released. */
  signal(until: AbortSignal): { readonly signal: AbortSignal; release(): void } {
    const controller = new AbortController();
    const abort = () => controller.abort();
    this.waiting.add(abort);
    until.addEventListener('abort', abort);
    if (until.aborted) abort();
    return {
      signal: controller.signal,
      release: () => {
        this.waiting.delete(abort);
        until.removeEventListener('abort', abort);
      },
    };
  }
}
