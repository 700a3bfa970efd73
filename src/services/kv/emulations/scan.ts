import { keyword } from '../resp/keyword.js';
import { RespError, RespStatus, type RespValue } from '../resp/resp-decoder.js';
import type { Argument, Command } from '../resp/resp-encoder.js';
import { type Emulate, type FollowUp, unchanged } from './emulation.js';
import { integerOf } from './integer.js';

/**
 * Keys looked at by a SCAN without COUNT: a keyspace of fewer comes in one page, where Redis' own 10 make clients ask
 * a hundred times. Such a page holds Redis up for 0.4 to 0.8 ms (7.0, 400,000 keys).
 */
const DEFAULT_COUNT = 1_000;

/** Most keys looked at by one SCAN WITHTYPE, as each makes a TYPE. COUNT is a hint and the cursor goes on: none is lost. */
const LARGEST_TYPED_COUNT = 10_000;

const WITH_VALUE = new Set(['MATCH', 'COUNT', 'TYPE']);
const TOO_MANY = new RespError('ERR the pages of SCAN WITHTYPE in one request are too large together');
const NO_KEY = Buffer.from('none');

interface Options {
  /** Cursor and options without WITHTYPE. */
  readonly kept: Argument[];
  /** Where in `kept` the values of COUNT stand. */
  readonly counts: readonly number[];
  readonly withType: boolean;
}

/** SCAN with WITHTYPE answers `[cursor, [key, type, key, type, ...]]`; SCAN without COUNT has larger pages than Redis'. */
export const emulateScan: Emulate = (command) => {
  const options = readOptions(command);
  if (options === undefined) return undefined;
  const { kept, counts, withType } = options;
  if (counts.length > 0 && !withType) return undefined;
  if (counts.length === 0) kept.push('COUNT', String(DEFAULT_COUNT));
  for (const at of counts) {
    if ((integerOf(kept[at]) ?? 0) > LARGEST_TYPED_COUNT) kept[at] = String(LARGEST_TYPED_COUNT);
  }
  return { command: kept, finish: withType ? askForTypes : unchanged };
};

/** `undefined` where the options are none that Redis 7 knows: the error, or a newer meaning, is the server's. */
function readOptions(command: Command): Options | undefined {
  if (command.length < 2) return undefined;
  const kept = command.slice(0, 2);
  const counts: number[] = [];
  let withType = false;
  for (let i = 2; i < command.length; i++) {
    const word = keyword(command, i);
    if (word === 'WITHTYPE') {
      withType = true;
      continue;
    }
    const value = command[i + 1];
    // the value of MATCH may be any word, WITHTYPE too
    if (value === undefined || !WITH_VALUE.has(word)) return undefined;
    kept.push(command[i] as Argument, value);
    if (word === 'COUNT') counts.push(kept.length - 1);
    i++;
  }
  return { kept, counts, withType };
}

function askForTypes(page: RespValue): RespValue | FollowUp {
  if (!Array.isArray(page)) return page;
  const [cursor = null, keys] = page;
  if (!Array.isArray(keys)) return page;
  const names = keys.filter((key): key is Buffer => key instanceof Buffer);
  if (names.length === 0) return page;
  return {
    commands: names.map((name) => ['TYPE', name]),
    otherwise: TOO_MANY,
    finish: (types) => types.find((type) => type instanceof RespError) ?? [cursor, pairs(names, types)],
  };
}

/** A key that vanished after the page was made has no type, and is left out. */
function pairs(names: readonly Buffer[], types: readonly RespValue[]): RespValue[] {
  const flat: RespValue[] = [];
  for (const [i, name] of names.entries()) {
    const type = types[i];
    if (type instanceof RespStatus && !type.bytes.equals(NO_KEY)) flat.push(name, type.bytes);
  }
  return flat;
}
