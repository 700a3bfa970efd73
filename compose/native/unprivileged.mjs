import { chmodSync, chownSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasProgram, runProgram } from '../processes/run-program.mjs';

/**
 * Who the backends' programs run as: never root.
 * @typedef {object} Runner
 * @property {number} uid
 * @property {number} gid
 * @property {string[]} prefix what is put before the program and its arguments
 */

/**
 * Options of setpriv: one capability survives the change of user and the exec, all others are gone for good. Without
 * no_setuid_fixup access(2), by which Postgres looks at its own programs, would ignore it for any user but root.
 */
function keeping(capability) {
  const caps = ['inh-caps', 'ambient-caps', 'bounding-set'].map((set) => `--${set}=-all,+${capability}`);
  return [...caps, '--securebits=+no_setuid_fixup'];
}

/** The weaker one first; Docker's default set has only the second. */
const passes = [[], keeping('dac_read_search'), keeping('dac_override')];

/** The entry of a user in /etc/passwd. */
function userEntry(name) {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((row) => row.startsWith(`${name}:`));
  if (!line) return undefined;
  const [, , uid, gid] = line.split(':');
  return { uid: Number(uid), gid: Number(gid) };
}

/**
 * The invoking user, or, for root, the system's `nobody`.
 *
 * A checkout may lie below a folder that this user cannot pass (/root, a private temporary folder). Only then
 * the program keeps a capability that lets it pass.
 * @param {string} dir the folder that must be within reach
 * @returns {Promise<Runner>}
 * @throws {Error} when no such user exists, or it cannot be let through
 */
export async function runnerFor(dir) {
  // not os.userInfo(), which fails for a user without an entry in /etc/passwd, as containers have them
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  if (uid !== 0) return { uid, gid, prefix: [] };
  const user = userEntry('nobody');
  if (!user) throw new Error('the system has no user nobody to run the backends as');
  if (!(await hasProgram('setpriv'))) throw new Error('setpriv (package util-linux) is missing');
  const drop = [`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'];
  for (const pass of passes) {
    const options = [...drop, ...pass];
    const reaches = await runProgram('setpriv', [...options, 'test', '-x', dir]).then(
      () => true,
      () => false,
    );
    if (reaches) return { ...user, prefix: ['setpriv', ...options] };
  }
  throw new Error(
    `backends do not run as root, and the user nobody cannot pass the folders above ${dir}: use another folder (PORTICO_STATE_DIR) or user`,
  );
}

/**
 * @param {Runner} runner
 * @returns {{file: string, args: string[]}} how to start a program as that user
 */
export function commandAs({ prefix }, program, options) {
  const [file = program, ...args] = [...prefix, program, ...options];
  return { file, args };
}

/** Gives a file, or a folder and all in it, to a user; symbolic links are not followed. The folder itself is last. */
export function giveTo(runner, path) {
  const entry = lstatSync(path);
  if (entry.isSymbolicLink()) return;
  if (entry.isDirectory()) for (const name of readdirSync(path)) giveTo(runner, join(path, name));
  if (entry.uid !== runner.uid || entry.gid !== runner.gid) chownSync(path, runner.uid, runner.gid);
}

/**
 * The same for data, of which there may be much, and which only their own program writes: once, as the folder tells.
 * Redis and Kafka would let every user of the machine read theirs.
 */
export function giveData(runner, folder) {
  const { uid, gid } = lstatSync(folder);
  if (uid !== runner.uid || gid !== runner.gid) giveTo(runner, folder);
  chmodSync(folder, 0o700);
}
