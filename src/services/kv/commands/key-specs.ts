import { keyword } from '../resp/keyword.js';
import { fields, items, text } from '../resp/reply-fields.js';
import type { RespValue } from '../resp/resp-decoder.js';
import type { Command } from '../resp/resp-encoder.js';

/** Where some of a command's keys stand: https://redis.io/docs/latest/develop/reference/key-specs/ */
export interface KeySpec {
  /** An argument's index, or the keyword (upper case) that they follow; `from` below 0 counts from the end. */
  readonly begin: number | { readonly keyword: string; readonly from: number };
  readonly find: KeyRange | KeyCount;
}

/** Up to `last`, counted from the first key, or below 0 from the end; `limit` 2: only the first half of what is left. */
interface KeyRange {
  readonly last: number;
  readonly step: number;
  readonly limit: number;
}

/** As many as the argument at `count` says, from `first` on; both counted from where the search ended. */
interface KeyCount {
  readonly count: number;
  readonly first: number;
  readonly step: number;
}

/** Indexes of arguments, `last` included. */
interface Positions {
  readonly first: number;
  readonly last: number;
  readonly step: number;
}

/**
 * What a server older than 7.0 does not tell: where the keys of its commands with `movablekeys` stand that have no fixed
 * first key.
 */
const OLD_SPECS: ReadonlyMap<string, KeySpec> = new Map([
  ...['eval', 'evalsha'].map((name) => [name, counted(2)] as const),
  ...['zunion', 'zinter', 'zdiff'].map((name) => [name, counted(1)] as const),
  ['xread', streams(1)],
  ['xreadgroup', streams(4)],
]);

function counted(index: number): KeySpec {
  return { begin: index, find: { count: 0, first: 1, step: 1 } };
}

function streams(from: number): KeySpec {
  return { begin: { keyword: 'STREAMS', from }, find: { last: -1, step: 1, limit: 2 } };
}

// Positions in an entry of the reply of COMMAND: https://redis.io/docs/latest/commands/command/
const FIRST_KEY = 3;
const LAST_KEY = 4;
const STEP = 5;
const KEY_SPECS = 8;

/** Reads one entry of the reply of `COMMAND`. Specifications of a kind that is not known are left out. */
export function readKeySpecs(name: string, entry: readonly RespValue[]): readonly KeySpec[] {
  const told = items(entry[KEY_SPECS]).map(readSpec);
  if (told.length > 0) return told.filter((spec) => spec !== undefined);
  const first = Number(text(entry[FIRST_KEY]));
  if (first > 0) {
    const last = Number(text(entry[LAST_KEY]));
    const find = { last: last < 0 ? last : last - first, step: Number(text(entry[STEP])), limit: 0 };
    return [{ begin: first, find }];
  }
  const old = OLD_SPECS.get(name);
  return old === undefined ? [] : [old];
}

function readSpec(reply: RespValue): KeySpec | undefined {
  const spec = fields(reply);
  const begin = readBegin(fields(spec.get('begin_search')));
  const find = readFind(fields(spec.get('find_keys')));
  return begin === undefined || find === undefined ? undefined : { begin, find };
}

function readBegin(search: ReadonlyMap<string, RespValue>): KeySpec['begin'] | undefined {
  const spec = fields(search.get('spec'));
  switch (text(search.get('type'))) {
    case 'index':
      return numberOf(spec, 'index');
    case 'keyword':
      return { keyword: text(spec.get('keyword')).toUpperCase(), from: numberOf(spec, 'startfrom') };
    default:
      return undefined;
  }
}

function readFind(search: ReadonlyMap<string, RespValue>): KeySpec['find'] | undefined {
  const spec = fields(search.get('spec'));
  const step = Math.max(1, numberOf(spec, 'keystep'));
  switch (text(search.get('type'))) {
    case 'range':
      return { last: numberOf(spec, 'lastkey'), step, limit: numberOf(spec, 'limit') };
    case 'keynum':
      return { count: numberOf(spec, 'keynumidx'), first: numberOf(spec, 'firstkey'), step };
    default:
      return undefined;
  }
}

function numberOf(spec: ReadonlyMap<string, RespValue>, name: string): number {
  return Number(text(spec.get(name)));
}

/** Index of the first key; `undefined` when there is none, or when the command is wrong in a way that Redis will refuse. */
export function firstKeyAt(specs: readonly KeySpec[], command: Command): number | undefined {
  for (const spec of specs) {
    const positions = positionsOf(spec, command);
    if (positions !== undefined) return positions.first;
  }
  return undefined;
}

/** Indexes of all keys, in the order of the specifications. */
export function keysAt(specs: readonly KeySpec[], command: Command): number[] {
  const all: number[] = [];
  for (const spec of specs) {
    const positions = positionsOf(spec, command);
    if (positions === undefined) continue;
    for (let i = positions.first; i <= positions.last; i += positions.step) all.push(i);
  }
  return all;
}

function positionsOf({ begin, find }: KeySpec, command: Command): Positions | undefined {
  const start = typeof begin === 'number' ? begin : afterKeyword(begin, command);
  if (start === undefined) return undefined;
  const positions = 'count' in find ? countedFrom(start, find, command) : rangeFrom(start, find, command);
  if (positions === undefined || positions.last >= command.length || positions.last < positions.first)
    return undefined;
  return positions;
}

/** Redis looks neither at the last argument, nor, from the end backwards, at the first one. */
function afterKeyword(begin: { keyword: string; from: number }, command: Command): number | undefined {
  const forward = begin.from > 0;
  const start = forward ? begin.from : command.length + begin.from;
  const end = forward ? command.length - 1 : 1;
  for (let i = start; forward ? i < end : i > end; i += forward ? 1 : -1) {
    if (keyword(command, i) === begin.keyword) return i + 1;
  }
  return undefined;
}

function rangeFrom(first: number, { last, step, limit }: KeyRange, { length }: Command): Positions {
  if (last >= 0) return { first, last: first + last, step };
  if (limit <= 1) return { first, last: length + last, step };
  return { first, last: first + Math.trunc((length - first) / limit) + last, step };
}

function countedFrom(start: number, find: KeyCount, command: Command): Positions | undefined {
  const count = keyword(command, start + find.count);
  // without a key there is no position
  if (!/^[1-9]\d{0,9}$/.test(count)) return undefined;
  const first = start + find.first;
  return { first, last: first + (Number(count) - 1) * find.step, step: find.step };
}
