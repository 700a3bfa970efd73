import { importKv } from './import-kv.mjs';
import { importVector } from './import-vector.mjs';
import { MoveState } from './move-state.mjs';

const importers = { kv: importKv, vector: importVector };

/** Of what could not be moved so much is printed; the file has all. */
const shown = 20;

/**
 * @typedef {object} ImportOptions
 * @property {string} [service]
 * @property {string} [from] URL
 * @property {string} [from-token]
 * @property {string} [to] URL
 * @property {string} [to-token]
 * @property {string} [match] of kv: a pattern of SCAN
 * @property {string} [state] the file in which it notes how far it is
 */

/**
 * Copies all of a database or an index from one server to another by their REST API.
 * @param {ImportOptions} given
 * @param {(line: string) => void} print
 * @returns {Promise<number>} 0 when all was moved and verified
 * @throws {Error} in one sentence
 */
export async function importFrom(given, print = console.log) {
  const { service = '', match } = given;
  const importer = importers[service];
  if (importer === undefined) throw new Error(`--service takes one of ${Object.keys(importers).join(', ')}`);
  const missing = /** @type {const} */ (['from', 'from-token', 'to', 'to-token']).find(
    (name) => !given[name],
  );
  if (missing !== undefined) throw new Error(`import needs --${missing}`);
  if (match !== undefined && service !== 'kv') throw new Error('--match is for kv');
  const place = (url = '', token = '') => {
    if (!/^https?:\/\//.test(url) || !URL.canParse(url))
      throw new Error(`${url} is no URL that begins with http:// or https://`);
    return { url, token };
  };
  const [from, to] = [place(given.from, given['from-token']), place(given.to, given['to-token'])];
  const about = { service, from: from.url, to: to.url, ...(match === undefined ? {} : { match }) };
  const state = new MoveState(given.state ?? `portico-import-${service}.json`, about);
  if (state.isResumed) print(`goes on where ${state.file} says: ${state.progress.moved} were moved before`);
  await importer(from, to, state, print);
  state.save({ isDone: true });
  const { moved, failed } = state.progress;
  for (const line of failed.slice(0, shown)) print(`NOT MOVED  ${line}`);
  if (failed.length > shown) print(`and ${failed.length - shown} more, see ${state.file}`);
  print(`done: ${moved} moved and verified, ${failed.length} not`);
  return failed.length === 0 ? 0 : 1;
}
