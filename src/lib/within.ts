/**
 * What `work` resolves to, unless it takes longer than `ms`; what comes then is dropped.
 * @throws what `work` rejects with, or what `late` makes
 */
export async function within<T>(
  ms: number,
  work: Promise<T>,
  late: () => Error = () => new Error(`no answer for ${ms} ms`),
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms);
  });
  try {
    return await Promise.race([work, over]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves when `work` has ended, well or badly, at the latest after `ms`. */
export async function endedWithin(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work.catch(() => {}), over]);
  clearTimeout(timer);
}
