/**
 * One node's answer, unless it takes longer than `ms`: one that has stopped in its tracks must not hold up what the
 * others can tell.
 * @throws Error when it is late; what comes then is dropped
 */
export async function answerWithin<T>(ms: number, answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer for ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
