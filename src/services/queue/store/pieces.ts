/** Bodies one behind the other; a lone one is not copied. */
export function joined(bodies: readonly Buffer[]): Buffer {
  const [first] = bodies;
  return bodies.length === 1 && first !== undefined ? first : Buffer.concat(bodies);
}

/** Cuts a list into pieces of at most `weight` together; a single item may have more. */
export function* inPieces<T>(
  items: readonly T[],
  weigh: (item: T) => number,
  weight: number,
): Generator<readonly T[]> {
  let from = 0;
  let total = 0;
  for (const [i, item] of items.entries()) {
    const more = weigh(item);
    if (i > from && total + more > weight) {
      yield items.slice(from, i);
      from = i;
      total = 0;
    }
    total += more;
  }
  if (from < items.length) yield items.slice(from);
}
