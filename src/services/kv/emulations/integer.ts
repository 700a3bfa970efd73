import type { Argument } from '../resp/resp-encoder.js';

/** More than any keyspace or collection holds; sums of a few stay exact numbers. */
const LARGEST = 2 ** 50;
const LEAST_64_BIT = -(2n ** 63n);
const LONGEST = String(LEAST_64_BIT).length;

/**
 * An argument that Redis takes for an integer: canonical decimal digits, 64 bits. What is beyond 2^50 either way
 * becomes that, which is equally beyond every index. `undefined`: Redis refuses it.
 */
export function integerOf(argument: Argument | undefined): number | undefined {
  if (argument === undefined || argument.length > LONGEST) return undefined;
  const text = typeof argument === 'string' ? argument : argument.toString('latin1');
  if (!/^(?:0|-?[1-9][0-9]*)$/.test(text)) return undefined;
  const exact = BigInt(text);
  if (exact < LEAST_64_BIT || exact >= -LEAST_64_BIT) return undefined;
  return Math.max(-LARGEST, Math.min(LARGEST, Number(exact)));
}
