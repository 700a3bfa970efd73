/**
 * Numbers that only depend on their seeds (mulberry32), so that a failing request can be made again.
 * @param {...number} seeds
 */
export function randomOf(...seeds) {
  let state = 1;
  for (const seed of seeds) state = Math.imul(state ^ (seed + 0x9e3779b9), 0x85ebca6b) ^ (state >>> 13);
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit) => Math.floor(next() * limit);
  const weighted = (choices) => {
    let rest = next() * choices.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, choice] of choices) {
      rest -= weight;
      if (rest < 0) return choice;
    }
    return choices[0][1];
  };
  return {
    /** A whole number from 0 to `limit - 1`. @param {number} limit */
    below,
    /** True in that share of the cases. @param {number} share */
    chance: (share) => next() < share,
    /** @template T @param {readonly T[]} list @returns {T} */
    pick: (list) => list[below(list.length)],
    /** One of the values, each as often as its weight says. @type {<T>(choices: readonly (readonly [number, T])[]) => T} */
    weighted,
    /** @param {number} length */
    bytes: (length) => Buffer.from(Array.from({ length }, () => below(256))),
    /** @template T @param {number} length @param {() => T} make @returns {T[]} */
    list: (length, make) => Array.from({ length }, make),
  };
}

/** @typedef {ReturnType<typeof randomOf>} Random */
