import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../state/profile.mjs';
import { architecture } from './archive.mjs';

/**
 * Which programs every machine gets, by version and checksum.
 * @typedef {object} LockFile
 * @property {Record<string, {programs: Record<string, import('./archive.mjs').LockedProgram>, files: Record<string, {size: number, sha256: string}>}>} architectures
 * @property {{version: string, jars: {path: string, size: number, sha256: string}[]}} kafka paths below a Maven repository
 * @property {Record<string, import('./redis-json.mjs').LockedModule>} redisJson by architecture
 */

export const lockFile = join(root, 'compose/native/programs/lock.json');

/** @returns {LockFile} */
export const readLock = () => JSON.parse(readFileSync(lockFile, 'utf8'));

/** A short digest that names a folder: another content is another folder. */
export const shortDigest = (value) =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 8);

/**
 * What the lock file names for this machine.
 * @throws {Error} where there are no programs for it
 */
export function lockedHere() {
  const lock = readLock();
  const arch = architecture();
  const here = arch === undefined ? undefined : lock.architectures[arch];
  if (arch === undefined || here === undefined)
    throw new Error(`there are no native programs for ${process.arch} processors: use a Docker engine`);
  return { lock, arch, ...here };
}
