import type { Instance } from '../../data/session.js';
import { run, type Word } from './run-command.js';

/** An element of a value: what names it, what it holds. */
export interface Element {
  readonly id: string;
  readonly value: string;
}

interface Window {
  readonly items: readonly Element[];
  readonly cursor?: string | undefined;
}

/** How the elements of one type are read in windows, and changed. */
export interface ValueType {
  readonly idTitle: string;
  readonly valueTitle: string;
  read(instance: Instance, key: string, cursor: string | undefined, signal: AbortSignal): Promise<Window>;
  /** What adds or replaces an element. @param id empty where the type gives it */
  put(key: string, id: string, value: string): readonly Word[];
  /** What takes one out; none: it cannot be. */
  remove?(key: string, element: Element): readonly Word[];
  /** New elements bring an id of their own. */
  readonly hasId: boolean;
  /** An element that is there can be replaced. */
  readonly isEditable: boolean;
}

/** Elements of one window. */
const COUNT = 100;

const pairs = (flat: readonly string[]): Element[] =>
  flat.flatMap((id, i) => (i % 2 === 0 ? [{ id: String(id), value: String(flat[i + 1]) }] : []));

/** By a cursor of Redis: HSCAN, SSCAN. */
const scanned =
  (command: string, elements: (flat: string[]) => Element[]): ValueType['read'] =>
  async (instance, key, cursor, signal) => {
    const words = [command, key, cursor ?? '0', 'COUNT', COUNT];
    const [next, flat] = await run<[string, string[]]>(instance, words, signal);
    return { items: elements(flat), cursor: String(next) === '0' ? undefined : String(next) };
  };

const hash: ValueType = {
  idTitle: 'Field',
  valueTitle: 'Value',
  read: scanned('HSCAN', pairs),
  put: (key, field, value) => ['HSET', key, field, value],
  remove: (key, { id }) => ['HDEL', key, id],
  hasId: true,
  isEditable: true,
};

const set: ValueType = {
  idTitle: 'Member',
  valueTitle: '',
  read: scanned('SSCAN', (members) => members.map((member) => ({ id: String(member), value: '' }))),
  put: (key, member) => ['SADD', key, member],
  remove: (key, { id }) => ['SREM', key, id],
  hasId: true,
  isEditable: false,
};

const list: ValueType = {
  idTitle: 'Index',
  valueTitle: 'Value',
  read: async (instance, key, cursor, signal) => {
    const from = Number(cursor ?? 0);
    const values = await run<string[]>(instance, ['LRANGE', key, from, from + COUNT - 1], signal);
    const items = values.map((value, i) => ({ id: String(from + i), value: String(value) }));
    return { items, cursor: values.length < COUNT ? undefined : String(from + COUNT) };
  },
  put: (key, index, value) => (index === '' ? ['RPUSH', key, value] : ['LSET', key, index, value]),
  hasId: false,
  isEditable: true,
};

const zset: ValueType = {
  idTitle: 'Member',
  valueTitle: 'Score',
  read: async (instance, key, cursor, signal) => {
    const from = Number(cursor ?? 0);
    const flat = await run<string[]>(instance, ['ZRANGE', key, from, from + COUNT - 1, 'WITHSCORES'], signal);
    return { items: pairs(flat), cursor: flat.length < 2 * COUNT ? undefined : String(from + COUNT) };
  },
  put: (key, member, score) => ['ZADD', key, score, member],
  remove: (key, { id }) => ['ZREM', key, id],
  hasId: true,
  isEditable: true,
};

const stream: ValueType = {
  idTitle: 'Entry',
  valueTitle: 'Fields',
  read: async (instance, key, cursor, signal) => {
    const end = cursor === undefined ? '+' : `(${cursor}`;
    const words = ['XREVRANGE', key, end, '-', 'COUNT', COUNT];
    const entries = await run<[string, string[]][]>(instance, words, signal);
    const items = entries.map(([id, fields]) => ({
      id,
      value: pairs(fields)
        .map((pair) => `${pair.id}: ${pair.value}`)
        .join('\n'),
    }));
    return { items, cursor: entries.length < COUNT ? undefined : entries.at(-1)?.[0] };
  },
  put: (key, _id, value) => ['XADD', key, '*', ...value.split('\n').flatMap(fieldOf)],
  remove: (key, { id }) => ['XDEL', key, id],
  hasId: false,
  isEditable: false,
};

function fieldOf(line: string): [string, string] {
  const [, field = line, value = ''] = /^([^:]*):\s?(.*)$/s.exec(line) ?? [];
  return [field, value];
}

export const valueTypes: Readonly<Record<string, ValueType>> = { hash, set, list, zset, stream };
