import { RespError, type RespValue } from '../resp/resp-decoder.js';

/** Makes the reply of the whole of the replies of its parts, none of which failed. */
export type Join = (replies: readonly RespValue[]) => RespValue;

const list = (reply: RespValue): readonly RespValue[] => (Array.isArray(reply) ? reply : []);
const integer = (reply: RespValue) => (typeof reply === 'string' ? BigInt(reply) : 0n);

export const first: Join = ([reply]) => reply;

export const sum: Join = (replies) => String(replies.reduce((total, reply) => total + integer(reply), 0n));

export const concatenation: Join = (replies) => replies.flatMap((reply) => list(reply));

/** Each string once. */
export const union: Join = (replies) => {
  const byBytes = new Map(
    replies.flatMap(list).map((item) => [item instanceof Buffer ? item.toString('latin1') : item, item]),
  );
  return [...byBytes.values()];
};

/** Lists of 0 and 1: 1 where all have 1. */
export const everywhere: Join = (replies) =>
  list(replies[0]).map((_, i) => (replies.every((reply) => list(reply)[i] === '1') ? '1' : '0'));

/** Names and numbers in turns, the same names everywhere: the sum of the numbers. */
export const sumOfPairs: Join = (replies) =>
  list(replies[0]).map((name, i) => (i % 2 === 0 ? name : sum(replies.map((reply) => list(reply)[i]))));

/** One of those that are not nil. */
export const anyOf: Join = (replies) => {
  const some = replies.filter((reply) => reply !== null);
  return some[Math.floor(Math.random() * some.length)] ?? null;
};

/** The first error when there is one, else what `join` makes. */
export function unlessFailed(join: Join): Join {
  return (replies) => replies.find((reply) => reply instanceof RespError) ?? join(replies);
}

/** One success is enough. */
export const oneSuccess: Join = (replies) =>
  replies.find((reply) => !(reply instanceof RespError)) ?? replies[0];
