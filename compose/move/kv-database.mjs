import { isUtf8 } from 'node:buffer';
import { RestClient } from './rest-client.mjs';

/** Elements of a large key that are read or written at once, and commands of a pipeline. */
const piece = 500;

/** @typedef {string | Buffer} Key bytes where it is no UTF-8 */

/** One database by its REST URL, whose replies are read byte for byte. */
export class KvDatabase extends RestClient {
  /** @param {unknown[][]} rows @returns {Promise<any[]>} results; an error is an `Error` */
  async pipeline(rows) {
    if (rows.length === 0) return [];
    const replies = await this.ask('POST', '/pipeline', rows, { 'upstash-encoding': 'base64' });
    return replies.map(({ result, error }) => (error === undefined ? decoded(result) : new Error(error)));
  }

  /** @param {unknown[]} words @throws {Error} */
  async run(...words) {
    const [result] = await this.pipeline([words]);
    if (result instanceof Error) throw result;
    return result;
  }

  /** A command with a key of any bytes, in the path. @param {Key[]} words @param {Buffer} [last] */
  async path(words, last) {
    const { result } = await this.ask('POST', words.map((word) => `/${quoted(word)}`).join(''), last, {
      'upstash-encoding': 'base64',
    });
    return decoded(result);
  }

  /** @param {string} cursor @param {string | undefined} match @returns {Promise<{next: string, keys: Buffer[]}>} */
  async scan(cursor, match) {
    const matching = match === undefined ? [] : ['MATCH', match];
    const [next, keys] = await this.run('SCAN', cursor, ...matching, 'COUNT', piece);
    return { next: String(next), keys };
  }

  /**
   * What a key holds, as lists of rows of bytes.
   * @param {string} key
   * @param {string} type as TYPE says
   * @returns {Promise<Buffer[][] | undefined>} `undefined` for a type that is not known here
   */
  async contents(key, type) {
    if (type === 'list') return this.listOf(key);
    if (type === 'stream') return this.streamOf(key);
    const scan = { hash: 'HSCAN', set: 'SSCAN', zset: 'ZSCAN' }[type];
    if (scan !== undefined) return this.scanned(scan, key, type === 'set' ? 1 : 2);
    if (/^(JSON|ReJSON-RL)$/i.test(type)) return [[await this.run('JSON.GET', key)]];
    return undefined;
  }

  async scanned(command, key, width) {
    /** @type {Map<string, Buffer[]>} an element may come twice */
    const rows = new Map();
    let cursor = '0';
    do {
      const [next, flat] = await this.run(command, key, cursor, 'COUNT', piece);
      for (let i = 0; i < flat.length; i += width) {
        const row = flat.slice(i, i + width).map(bytesOf);
        rows.set(row[0].toString('latin1'), row);
      }
      cursor = String(next);
    } while (cursor !== '0');
    return [...rows.keys()].sort().map((name) => /** @type {Buffer[]} */ (rows.get(name)));
  }

  async listOf(key) {
    const rows = [];
    for (let from = 0; ; from += piece) {
      const some = await this.run('LRANGE', key, from, from + piece - 1);
      rows.push(...some.map((one) => [bytesOf(one)]));
      if (some.length < piece) return rows;
    }
  }

  async streamOf(key) {
    const rows = [];
    for (let from = '-'; ; ) {
      const some = await this.run('XRANGE', key, from, '+', 'COUNT', piece);
      for (const [id, fields] of some) rows.push([bytesOf(id), ...fields.map(bytesOf)]);
      if (some.length < piece) return rows;
      from = `(${some.at(-1)[0]}`;
    }
  }
}

/** How the rows of `contents` are written. */
const writers = {
  list: (key, rows) => [['RPUSH', key, ...rows.flat()]],
  set: (key, rows) => [['SADD', key, ...rows.flat()]],
  hash: (key, rows) => [['HSET', key, ...rows.flat()]],
  zset: (key, rows) => [['ZADD', key, ...rows.flatMap(([member, score]) => [score, member])]],
  stream: (key, rows) => rows.map(([id, ...fields]) => ['XADD', key, id, ...fields]),
};

/**
 * The commands that write what `contents` has read, in steps.
 * @param {string} key @param {string} type @param {Buffer[][]} rows of UTF-8
 * @returns {unknown[][][]}
 */
export function writesOf(key, type, rows) {
  const texts = rows.map((row) => row.map(String));
  const write = writers[type];
  if (write === undefined) return [[['JSON.SET', key, '$', texts[0]?.[0]]]];
  const steps = [];
  for (let i = 0; i < texts.length; i += piece) steps.push(write(key, texts.slice(i, i + piece)));
  return steps;
}

/** JSON holds text only. @param {Buffer[][]} rows */
export const areText = (rows) => rows.every((row) => row.every((one) => isUtf8(one)));

/** @param {any} value */
export const bytesOf = (value) => (Buffer.isBuffer(value) ? value : Buffer.from(String(value)));

/** Of base64, except OK, which is sent as it is. */
function decoded(value) {
  if (Array.isArray(value)) return value.map(decoded);
  if (typeof value !== 'string') return value;
  return value === 'OK' ? Buffer.from(value) : Buffer.from(value, 'base64');
}

const quoted = (word) => [...bytesOf(word)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
