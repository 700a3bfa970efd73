import { createReadStream, createWriteStream, existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createInflateRaw } from 'node:zlib';
import { download, fetchBytes } from './download.mjs';

/**
 * Redis' JSON module, one member of a wheel (a zip file) of PyPI.
 * @typedef {object} LockedModule
 * @property {string} project
 * @property {string} wheel file name
 * @property {number} start of the member's compressed bytes in the wheel
 * @property {number} size of them
 * @property {string} sha256 of them
 * @property {string} license
 */

/** The index that pip uses; PORTICO_PYPI_INDEX names another one. */
const publicIndex = 'https://pypi.org/simple';

/** @param {import('../../state/profile.mjs').Profile} p @param {LockedModule} locked */
export const jsonModuleOf = (p, locked) =>
  join(p.programs, `json-module-${locked.sha256.slice(0, 8)}`, 'rejson.so');

/** The wheel's address, from the project's page. */
async function addressOf({ project, wheel }) {
  const index = (process.env.PORTICO_PYPI_INDEX || publicIndex).replace(/\/$/, '');
  const page = `${index}/${project}/`;
  const links = (await fetchBytes(page)).toString().matchAll(/href="([^"#]+)/g);
  for (const [, link = ''] of links) if (link.endsWith(`/${wheel}`)) return new URL(link, page).href;
  throw new Error(`${wheel} is no longer there`);
}

/**
 * Fetches the module from its publisher, for this user: its licence (RSALv2 or SSPLv1) does not let us hand it on.
 * @param {import('../../state/profile.mjs').Profile} p
 * @param {LockedModule} locked
 * @param {(line: string) => void} progress
 */
export async function fetchJsonModule(p, locked, progress) {
  const file = jsonModuleOf(p, locked);
  if (existsSync(file)) return;
  const packed = join(file, '../rejson.so.deflated');
  const { start, size, sha256 } = locked;
  progress(`fetching Redis' JSON module (${(size / 1e6).toFixed(1)} MB)`);
  await download(
    { urls: [await addressOf(locked)], file: packed, sha256, size, range: { start } },
    () => undefined,
  );
  await pipeline(
    createReadStream(packed),
    createInflateRaw(),
    createWriteStream(`${file}.new`, { mode: 0o755 }),
  );
  renameSync(`${file}.new`, file);
  rmSync(packed);
}
