import { isUtf8 } from 'node:buffer';
import { isDeepStrictEqual } from 'node:util';
import { areText, bytesOf, KvDatabase, writesOf } from './kv-database.mjs';
import { eachOf } from './rest-client.mjs';

/** Keys that are moved at once. */
const atOnce = 8;
/** Longer strings are moved one by one. */
const smallBytes = 16 * 1024;
/** A key is begun anew so often when a write fails. */
const tries = 3;
/** A lifetime may be measured so much apart, in ms. */
const ttlSlackMs = 5_000;

/**
 * Copies every key, page by page of SCAN, whose cursor is saved: what is moved twice comes to the same.
 * @param {import('./rest-client.mjs').Place} from
 * @param {import('./rest-client.mjs').Place} to
 * @param {import('./move-state.mjs').MoveState} state
 * @param {(line: string) => void} print
 */
export async function importKv(from, to, state, print) {
  const [source, target] = [new KvDatabase(from), new KvDatabase(to)];
  const { match } = state.progress;
  let cursor = state.progress.at ?? '0';
  do {
    const { next, keys } = await source.scan(cursor, match);
    const failed = await movePage(source, target, keys);
    const { moved, failed: before } = state.progress;
    state.save({ at: next, moved: moved + keys.length - failed.length, failed: [...before, ...failed] });
    print(`${state.progress.moved} keys moved and verified`);
    cursor = next;
  } while (cursor !== '0');
}

/**
 * A key whose name is text, as it was met.
 * @typedef {{key: string, type: string, bytes: number, ttl: (() => number) | undefined}} Met
 */

/** @returns {Promise<string[]>} what could not be moved */
async function movePage(source, target, keys) {
  /** @type {string[]} */
  const failed = [];
  const isText = (key) => isUtf8(key);
  const all = await metKeys(source, keys.filter(isText).map(String));
  const isSmall = ({ type, bytes }) => type === 'string' && bytes <= smallBytes;
  const left = await moveStrings(source, target, all.filter(isSmall));
  const moving = [
    ...[...left, ...all.filter((one) => !isSmall(one))].map((met) => ({
      key: met.key,
      move: () => moveKey(source, target, met),
    })),
    ...keys.filter((key) => !isText(key)).map((key) => ({ key, move: () => moveWhole(source, target, key) })),
  ];
  await eachOf(moving, atOnce, async ({ key, move }) => {
    const reason = await repeated(move);
    if (reason !== undefined) failed.push(`${key}: ${reason}`);
  });
  return failed;
}

/** @returns {Promise<Met[]>} */
async function metKeys(source, keys) {
  const readAt = performance.now();
  // of what is no string it is refused
  const facts = await source.pipeline(
    keys.flatMap((key) => [
      ['TYPE', key],
      ['PTTL', key],
      ['STRLEN', key],
    ]),
  );
  return keys.map((key, i) => ({
    key,
    type: String(facts[3 * i]),
    bytes: Number(facts[3 * i + 2]),
    ttl: ttlOf(facts[3 * i + 1], readAt),
  }));
}

/**
 * Small strings, many in one request.
 * @param {Met[]} all
 * @returns {Promise<Met[]>} those that want a look of their own: bytes, short lifetimes, what is not the same there
 */
async function moveStrings(source, target, all) {
  const values = await source.pipeline(all.map(({ key }) => ['GET', key]));
  const isPlain = (value, ttl) =>
    Buffer.isBuffer(value) && isUtf8(value) && (ttl === undefined || ttl() > 2 * ttlSlackMs);
  const plain = all
    .map((met, i) => ({ met, value: values[i] }))
    .filter(({ met, value }) => isPlain(value, met.ttl));
  await target.pipeline(
    plain.map(({ met: { key, ttl }, value }) => [
      ...['SET', key, String(value)],
      ...(ttl === undefined ? [] : ['PX', ttl()]),
    ]),
  );
  const there = await target.pipeline(
    plain.flatMap(({ met: { key } }) => [
      ['GET', key],
      ['PTTL', key],
    ]),
  );
  const done = new Set(
    plain
      .filter(
        ({ met: { ttl }, value }, i) =>
          bytesOf(there[2 * i]).equals(value) && isSameTtl(Number(there[2 * i + 1]), ttl),
      )
      .map(({ met }) => met),
  );
  return all.filter((met) => !done.has(met));
}

/** @returns {Promise<string | undefined>} why it cannot be done */
async function repeated(move) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await move();
    } catch (error) {
      if (attempt === tries) return error.message;
    }
  }
}

/** What is left of it when it is asked; `undefined`: it has no end. */
function ttlOf(pttl, readAt) {
  const ms = Number(pttl);
  return ms < 0 ? undefined : () => Math.round(ms - (performance.now() - readAt));
}

/** @throws {Error} for what may go better the next time @returns {Promise<string | undefined>} */
async function moveKey(source, target, { key, type, ttl }) {
  if (type === 'none') return undefined;
  if (type === 'string') return moveString(source, target, key, ttl);
  const rows = await source.contents(key, type);
  // an end between TYPE and here
  if (rows !== undefined && rows.length === 0 && type !== 'stream') return undefined;
  if (rows === undefined || !areText(rows) || rows.length === 0) return moveWhole(source, target, key);
  demand(await target.pipeline([['DEL', key]]));
  for (const step of writesOf(key, type, rows)) demand(await target.pipeline(step));
  if (type === 'stream') await moveGroups(source, target, key);
  await expire(target, key, ttl);
  const there = await target.contents(key, type);
  if (ttl !== undefined && ttl() <= 0) return undefined;
  return (
    (await verifiedTtl(target, key, ttl)) ?? (same(type, rows, there) ? undefined : 'is not the same there')
  );
}

async function moveString(source, target, key, ttl) {
  const value = await source.run('GET', key);
  if (value === null) return undefined;
  const left = ttl?.();
  if (left !== undefined && left <= 0) return undefined;
  if (isUtf8(bytesOf(value)))
    demand(await target.pipeline([['SET', key, String(value), ...(left === undefined ? [] : ['PX', left])]]));
  else {
    await target.path(['SET', key], bytesOf(value));
    await expire(target, key, ttl);
  }
  const there = await target.run('GET', key);
  if (ttl !== undefined && ttl() <= 0) return undefined;
  if (there === null || !bytesOf(there).equals(bytesOf(value))) return 'is not the same there';
  return verifiedTtl(target, key, ttl);
}

/** Types that are not known here, and bytes that JSON cannot hold: as DUMP and RESTORE have them, which check themselves. */
async function moveWhole(source, target, key) {
  const readAt = performance.now();
  const pttl = await source.path(['PTTL', key]);
  const ttl = ttlOf(pttl, readAt);
  const dump = await source.path(['DUMP', key]);
  if (dump === null) return undefined;
  const left = ttl?.() ?? 0;
  if (ttl !== undefined && left <= 0) return undefined;
  await target.path(['DEL', key]);
  await target.path(['RESTORE', key, String(left)], dump);
  return undefined;
}

/** Consumer groups with where they are; what was delivered and not acknowledged is not part of it. */
async function moveGroups(source, target, key) {
  for (const flat of await source.run('XINFO', 'GROUPS', key)) {
    const facts = Object.fromEntries(
      Array.from({ length: flat.length / 2 }, (_, i) => [String(flat[2 * i]), flat[2 * i + 1]]),
    );
    demand(
      await target.pipeline([
        ['XGROUP', 'CREATE', key, String(facts.name), String(facts['last-delivered-id'])],
      ]),
    );
  }
}

async function expire(target, key, ttl) {
  if (ttl !== undefined) demand(await target.pipeline([['PEXPIRE', key, Math.max(1, ttl())]]));
}

async function verifiedTtl(target, key, ttl) {
  const there = Number(await target.run('PTTL', key));
  return isSameTtl(there, ttl) ? undefined : 'has another lifetime there';
}

function isSameTtl(there, ttl) {
  if (ttl === undefined) return there === -1;
  const left = ttl();
  return left <= 0 || Math.abs(there - left) < ttlSlackMs;
}

/** Modules order the members of an object as they like. */
function same(type, rows, there) {
  if (/json/i.test(type))
    return isDeepStrictEqual(JSON.parse(String(rows[0]?.[0])), JSON.parse(String(there?.[0]?.[0])));
  return isDeepStrictEqual(rows, there);
}

function demand(results) {
  const refused = results.find((result) => result instanceof Error);
  if (refused !== undefined) throw refused;
}
