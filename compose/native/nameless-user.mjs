import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Interrupted } from '../processes/interruption.mjs';
import { isThere, programOf } from './programs/programs.mjs';
import { loaderOf } from './programs/relocate.mjs';
import { commandAs } from './unprivileged.mjs';

/**
 * `docker run --user 12345` and some CI systems run everything as a user who has no name, and initdb refuses one. The
 * library nss_wrapper answers its question from a file of ours.
 */

const library = 'nss-wrapper';

/** @param {number} uid */
function hasName(uid) {
  if (!existsSync('/etc/passwd')) return false;
  const rows = readFileSync('/etc/passwd', 'utf8').split('\n');
  return rows.some((row) => Number(row.split(':')[2] || Number.NaN) === uid);
}

/** Root gives the backends to a user that has a name. */
function isNameless() {
  const uid = process.getuid?.() ?? 0;
  return uid !== 0 && !hasName(uid);
}

/**
 * Brings the library where it is needed. Without it a directory service may know the user's name, so a failure is told
 * and ends nothing.
 * @param {import('./programs/programs.mjs').Installer} installer
 */
export async function fetchNames(installer) {
  if (!isNameless()) return;
  await installer.program(library).catch((error) => {
    if (error instanceof Interrupted) throw error;
    installer.say(`nss_wrapper, which names user ${process.getuid?.()}, cannot be had: ${error.message}`);
  });
}

const fileName = 'libnss_wrapper.so';

/**
 * What goes between a loader and its program. The library is named without its folder, which the loader looks up: a list
 * of libraries ends a name at a blank, a list of folders does not.
 */
function preloading(p) {
  const { tree } = programOf(p, library);
  for (const name of readdirSync(join(tree, 'usr/lib'))) {
    const folder = join(tree, 'usr/lib', name);
    if (existsSync(join(folder, fileName))) return ['--library-path', folder, '--preload', fileName];
  }
  throw new Error(`${tree} holds no ${fileName}`);
}

const shellQuoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** A script that starts a program with the library, and hands it all that the script is given. */
function writeScript(file, command) {
  const words = command.map(shellQuoted);
  writeFileSync(file, `#!/bin/sh\nexec ${words.join(' ')} "$@"\n`);
  chmodSync(file, 0o755);
}

/**
 * How initdb, or `postgres --single`, is started, which ask who they are. So does the `postgres` that initdb starts: both
 * get the library from their own loader. By LD_PRELOAD it would go into the system's shell between them, too, whose libc
 * may be older.
 * @param {import('./backend.mjs').Running} context
 * @param {{tree: string, bin: string, share: string}} places of PostgreSQL
 * @param {'initdb' | 'postgres'} program
 * @param {string[]} options
 * @returns {{file: string, args: string[], env: Record<string, string>}}
 */
export function commandWithName({ p, runner }, { tree, bin, share }, program, options) {
  if (!isNameless() || !isThere(p, library))
    return { ...commandAs(runner, join(bin, program), options), env: {} };
  const folder = join(p.run, 'initdb');
  mkdirSync(folder, { recursive: true });
  const [passwd, group] = [join(folder, 'passwd'), join(folder, 'group')];
  writeFileSync(passwd, `portico:x:${runner.uid}:${runner.gid}::/:/bin/false\n`);
  writeFileSync(group, `portico:x:${runner.gid}:\n`);
  const { loader } = loaderOf(tree);
  const preload = preloading(p);
  writeScript(join(folder, 'postgres'), [loader, ...preload, join(bin, 'postgres')]);
  const env = { NSS_WRAPPER_PASSWD: passwd, NSS_WRAPPER_GROUP: group };
  if (program === 'postgres') return { file: join(folder, 'postgres'), args: options, env };
  // it looks for `postgres` where it lies itself
  copyFileSync(join(bin, 'initdb'), join(folder, 'initdb'));
  return { file: loader, args: [...preload, join(folder, 'initdb'), '-L', share, ...options], env };
}

/** @param {Error} error of initdb @returns {Error} in one sentence with the way out, where it was about the user's name */
export function explainNameless(error) {
  if (!/could not look up effective user ID/.test(error.message)) return error;
  return new Error(
    `PostgreSQL makes no data for user ${process.getuid?.()}, who has no entry in /etc/passwd, and the library that stands in for one cannot be had: start once with a network, add an entry, or run as another user`,
    { cause: error },
  );
}
