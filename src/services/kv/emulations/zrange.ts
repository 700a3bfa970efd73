import { keyword } from '../resp/keyword.js';
import type { RespValue } from '../resp/resp-decoder.js';
import type { Argument, Command } from '../resp/resp-encoder.js';
import type { Emulate } from './emulation.js';
import { integerOf } from './integer.js';

interface Options {
  /** All options without LIMIT. */
  readonly kept: Argument[];
  readonly limit: Limit | undefined;
  readonly withScores: boolean;
  /** BYSCORE or BYLEX: Redis takes LIMIT with these. */
  readonly byValue: boolean;
}

interface Limit {
  /** Below 0: nothing, as with BYSCORE. */
  readonly offset: number;
  /** Below 0: all. */
  readonly count: number;
}

/** A range of indexes, and which of its members are the answer: from `skip` on, `take` at most, none of the last `drop`. */
interface Window {
  readonly start: Argument;
  readonly stop: Argument;
  readonly skip: number;
  readonly take: number;
  readonly drop: number;
}

const NOTHING: Window = { start: '1', stop: '0', skip: 0, take: 0, drop: 0 };

/**
 * ZRANGE by index takes LIMIT too: it counts within start and stop. Redis is asked for the indexes that are wanted
 * and few more, so that LIMIT on a huge set is no huge reply. ZRANGESTORE is left alone: what it stores cannot be cut
 * afterwards without others seeing it in between.
 */
export const emulateZrange: Emulate = (command) => {
  const [name, key, start, stop] = command;
  if (name === undefined || key === undefined || start === undefined || stop === undefined) return undefined;
  const options = readOptions(command);
  if (options?.limit === undefined || options.byValue) return undefined;
  const window = windowOf(start, stop, options.limit);
  const width = options.withScores ? 2 : 1;
  return {
    command: [name, key, window.start, window.stop, ...options.kept],
    finish: (reply) => cut(reply, window, width),
  };
};

/** `undefined` where Redis refuses the options: the error is its own. */
function readOptions(command: Command): Options | undefined {
  const kept: Argument[] = [];
  let limit: Limit | undefined;
  let withScores = false;
  let byValue = false;
  for (let i = 4; i < command.length; i++) {
    const word = keyword(command, i);
    if (word === 'LIMIT') {
      const offset = integerOf(command[i + 1]);
      const count = integerOf(command[i + 2]);
      if (offset === undefined || count === undefined) return undefined;
      limit = { offset, count };
      i += 2;
      continue;
    }
    if (word === 'WITHSCORES') withScores = true;
    else if (word === 'BYSCORE' || word === 'BYLEX') byValue = true;
    else if (word !== 'REV') return undefined;
    kept.push(command[i] as Argument);
  }
  return { kept, limit, withScores, byValue };
}

function windowOf(start: Argument, stop: Argument, { offset, count }: Limit): Window {
  if (offset < 0 || count === 0) return NOTHING;
  const first = integerOf(start);
  const last = integerOf(stop);
  const take = count < 0 ? Number.POSITIVE_INFINITY : count;
  // a start from the end asks for so many members at most, and where that is depends on the size; what is no integer
  // is refused by Redis
  if (first === undefined || last === undefined || first < 0)
    return { start, stop, skip: offset, take, drop: 0 };
  const from = first + offset;
  if (count < 0) return { start: String(from), stop, skip: 0, take, drop: 0 };
  const to = from + count - 1;
  if (last >= 0) return { start: String(from), stop: String(Math.min(to, last)), skip: 0, take, drop: 0 };
  // a stop of -1 - n keeps the last n members out: ask for n more and drop the last n that come
  const drop = -1 - last;
  return { start: String(from), stop: String(to + drop), skip: 0, take, drop };
}

function cut(reply: RespValue, { skip, take, drop }: Window, width: number): RespValue {
  if (!Array.isArray(reply)) return reply;
  const end = Math.min(reply.length - drop * width, (skip + take) * width);
  return reply.slice(skip * width, Math.max(0, end));
}
