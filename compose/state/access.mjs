import { accessSync, constants, existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandLine } from './profile.mjs';

const { R_OK, W_OK, X_OK } = constants;

/** @returns {string} a user's name, or his number where he has none */
function userName(uid) {
  const rows = existsSync('/etc/passwd') ? readFileSync('/etc/passwd', 'utf8').split('\n') : [];
  return rows.map((row) => row.split(':')).find(([, , id]) => id === String(uid))?.[0] ?? String(uid);
}

function entriesOf(folder) {
  try {
    return readdirSync(folder).map((name) => join(folder, name));
  } catch {
    return []; // not made yet; or it is named itself
  }
}

/**
 * Whether a file can be read and, like a folder, changed. What cannot be seen, or is on a disk that nobody may write, is no
 * matter of users.
 */
function isOpen(path) {
  const entry = lstatOf(path);
  if (entry === undefined) return true;
  try {
    accessSync(path, entry.isDirectory() ? R_OK | W_OK | X_OK : R_OK | W_OK);
    return true;
  } catch (error) {
    return error.code !== 'EACCES' && error.code !== 'EPERM';
  }
}

function lstatOf(path) {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}

/**
 * For all that reads or changes what an earlier start has left.
 * @param {import('./profile.mjs').Profile} p
 * @throws {Error} in one sentence where that was another user's start, often root's: a backend that cannot see its data
 *   would take them for missing
 */
export function demandAccess(p) {
  const own = [p.dir, join(p.dir, 'secrets.env')];
  const inner = [p.data, p.logs, p.run].flatMap((folder) => [folder, ...entriesOf(folder)]);
  const closed = [...own, ...inner].find((path) => !isOpen(path));
  if (closed === undefined) return;
  const owner = lstatSync(closed).uid;
  if (owner === process.getuid?.())
    throw new Error(`${closed} is closed to its owner: chmod u+rwX ${closed}`);
  const name = userName(owner);
  // whom root gives the backends to
  const starter = name === 'nobody' ? 'root' : name;
  throw new Error(
    `${closed} belongs to user ${name}, and this user may not change it, since ${starter} has started Portico there: go on as ${starter}, or ${commandLine('stop')} as ${starter} and give ${p.dir} to this user (chown -R)`,
  );
}
