import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Interrupted, interruption } from '../../processes/interruption.mjs';
import { createSlots } from './slots.mjs';

/**
 * One file to fetch.
 * @typedef {object} Wanted
 * @property {string[]} urls the same file at several mirrors; the next one is asked when one fails
 * @property {string} file where it goes
 * @property {string} sha256
 * @property {number} size in bytes
 * @property {{start: number}} [range] the file is `size` bytes of a larger one, from `start` on
 */

/** A mirror that sends less than this in such a time is given up; what has come is kept and continued. */
const leastBytes = 16 * 1024;
const silenceMs = 15_000;
const attemptsPerUrl = 3;
/** The largest that is read into memory, Debian's list of packages, has a fifth of it. */
const memoryLimit = 64 * 1024 * 1024;
/** More at once do not go faster from one mirror, and each holds a connection there. */
const sideBySide = 6;

/** No mirror has the file any more (404 or 410). */
export class Gone extends Error {
  constructor(url) {
    super(`${url} is no longer there`);
    this.name = 'Gone';
  }
}

const sizeOf = (file) => (existsSync(file) ? statSync(file).size : 0);

async function digestOf(file) {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk);
  return hash.digest('hex');
}

/** A signal that fires when next to nothing was heard for a while, or the user wants out. */
function patience() {
  const controller = new AbortController();
  let timer;
  let sinceThen = 0;
  const onInterrupt = () => controller.abort(new Interrupted());
  interruption.addEventListener('abort', onInterrupt, { once: true });
  const wait = () => {
    clearTimeout(timer);
    sinceThen = 0;
    timer = setTimeout(() => {
      const what = sinceThen === 0 ? 'nothing' : `only ${sinceThen} bytes`;
      controller.abort(new Error(`${what} came in ${silenceMs / 1000} s`));
    }, silenceMs);
  };
  const heard = (bytes) => {
    sinceThen += bytes;
    if (sinceThen >= leastBytes) wait();
  };
  const end = () => {
    clearTimeout(timer);
    interruption.removeEventListener('abort', onInterrupt);
  };
  wait();
  return { signal: controller.signal, heard, end };
}

/** Writes what is still missing of a file, from where an earlier attempt ended. */
async function continueFile(url, { range, size }, part, onBytes) {
  const start = range?.start ?? 0;
  const had = sizeOf(part) < size ? sizeOf(part) : 0;
  const wait = patience();
  /** @type {Record<string, string>} */
  const headers = range || had > 0 ? { range: `bytes=${start + had}-${start + size - 1}` } : {};
  try {
    const answer = await fetch(url, { headers, signal: wait.signal });
    if (answer.status === 404 || answer.status === 410) throw new Gone(url);
    if (!answer.ok || !answer.body) throw new Error(`${url} answers ${answer.status}`);
    // A server that does not know ranges sends the whole file: what is not wanted of it is passed over.
    const partial = answer.status === 206;
    const from = partial ? start + had : 0;
    const out = await open(part, partial && had > 0 ? 'a' : 'w');
    let at = from;
    onBytes(partial ? had : 0);
    try {
      for await (const chunk of answer.body) {
        wait.heard(chunk.length);
        const piece = chunk.subarray(Math.max(0, start - at), Math.max(0, start + size - at));
        at += chunk.length;
        onBytes(piece.length);
        if (piece.length > 0) await out.writeFile(piece);
        if (at >= start + size) break;
      }
    } finally {
      await out.close();
    }
  } catch (error) {
    throw interruption.aborted ? new Interrupted() : error;
  } finally {
    wait.end();
  }
}

/** The words of the innermost cause: fetch's own is no more than 'fetch failed'. */
function reasonOf(error) {
  let innermost = error;
  while (innermost.cause instanceof Error) innermost = innermost.cause;
  return innermost.message || innermost.code || String(innermost);
}

/** Hosts that did not answer in this run, with the reason: a hundred files need not find it out one after the other. */
const silentHosts = new Map();

/** Which failures another attempt at the same place may cure. */
const mayPass = (error) => !(error instanceof Gone) && error.code !== 'ENOSPC' && error.code !== 'EACCES';

/** What an earlier start has left whole; a disk may have lost it since. */
async function isThere({ file, size, sha256 }) {
  return sizeOf(file) === size && (await digestOf(file)) === sha256;
}

async function fetchOne(wanted, onBytes) {
  if (await isThere(wanted)) return;
  const part = `${wanted.file}.part`;
  mkdirSync(dirname(wanted.file), { recursive: true });
  let failure;
  let gone = 0;
  for (const url of wanted.urls) {
    const { host } = new URL(url);
    failure = silentHosts.get(host);
    if (failure) continue;
    for (let attempt = 0; attempt < attemptsPerUrl; attempt += 1) {
      let counted = 0;
      const count = (bytes) => {
        counted += bytes;
        onBytes(bytes);
      };
      try {
        await continueFile(url, wanted, part, count);
        if (sizeOf(part) !== wanted.size || (await digestOf(part)) !== wanted.sha256) {
          if (sizeOf(part) >= wanted.size) rmSync(part);
          throw new Error(`${url} sent something else than the lock file names (size or SHA-256)`);
        }
        renameSync(part, wanted.file);
        return;
      } catch (error) {
        onBytes(-counted);
        if (error instanceof Interrupted) throw error;
        failure = error;
        if (error instanceof Gone) gone += 1;
        if (!mayPass(error)) break;
        if (attempt === attemptsPerUrl - 1 && counted === 0) silentHosts.set(host, error);
        await sleep(300 * (attempt + 1));
      }
    }
    if (failure.code === 'ENOSPC') break;
  }
  if (gone === wanted.urls.length) throw failure;
  const host = new URL(wanted.urls[0] ?? '').host;
  throw Object.assign(new Error(`cannot fetch from ${host}: ${reasonOf(failure)}`, { cause: failure }), {
    code: failure.code,
  });
}

const slots = createSlots(sideBySide);
/** Two programs may need the same library: it is fetched once. */
const underWay = new Map();

/**
 * Fetches a file, checked against its SHA-256; what was cut off is continued the next time. Any number may be asked for
 * at once, a few are fetched side by side.
 * @param {Wanted} wanted
 * @param {(bytes: number) => void} onBytes how many more came; below 0 when they have to come again
 * @throws {Gone} when no mirror has it
 * @throws {Error} with the reason
 */
export function download(wanted, onBytes) {
  const known = underWay.get(wanted.file);
  if (known) return known;
  const work = slots(() => fetchOne(wanted, onBytes)).finally(() => underWay.delete(wanted.file));
  underWay.set(wanted.file, work);
  return work;
}

/**
 * Fetches a small file into memory.
 * @param {string} url
 * @returns {Promise<Buffer>}
 * @throws {Gone} when it is not there
 * @throws {Error} with the reason
 */
export async function fetchBytes(url) {
  const wait = patience();
  try {
    const answer = await fetch(url, { signal: wait.signal });
    if (answer.status === 404 || answer.status === 410) throw new Gone(url);
    if (!answer.ok || !answer.body) throw new Error(`${url} answers ${answer.status}`);
    const chunks = [];
    let length = 0;
    for await (const chunk of answer.body) {
      wait.heard(chunk.length);
      chunks.push(chunk);
      length += chunk.length;
      if (length > memoryLimit) throw new Error(`${url} has no end`);
    }
    return Buffer.concat(chunks);
  } catch (error) {
    if (interruption.aborted) throw new Interrupted();
    if (error instanceof Gone) throw error;
    throw new Error(`cannot fetch from ${new URL(url).host}: ${reasonOf(error)}`, { cause: error });
  } finally {
    wait.end();
  }
}
