import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive, readProcess, taggedWith, tree } from './process-table.mjs';

/** @typedef {import('./process-table.mjs').ProcessId} ProcessId */

/** A log that outgrew this is set aside at the next start, so two generations are kept and no more. */
const logLimitBytes = 10 * 1024 * 1024;
const pollMs = 50;

/** The variable by which a process of ours is known again when its pid file is lost. */
export const tagName = 'STARTED_BY_PORTICO_AS';

/** @param {string} pidFile */
function tagOf(pidFile) {
  return `${tagName}=${pidFile}`;
}

/** @returns {Record<string, string>} the tag for a program that this one waits for, and may be killed before it ends */
export const tagged = (pidFile) => ({ [tagName]: pidFile });

/**
 * npm and the compiler go on when their launcher is killed, and must have ended before the next one works in the same
 * folders.
 * @param {string} pidFile their tag
 * @returns {Promise<Record<string, string>>} the environment for their successors
 */
export async function succeed(pidFile) {
  await stopFamily(pidFile, { graceMs: 2_000 });
  return tagged(pidFile);
}

/** Writes a pid file: the number and the start time, by which a reused number is told apart. */
export function writePidFile(pidFile, pid) {
  const row = readProcess(pid);
  if (!row) throw new Error(`process ${pid} ended at once`);
  writeFileSync(`${pidFile}.new`, `${row.pid} ${row.start}\n`);
  renameSync(`${pidFile}.new`, pidFile);
}

/**
 * The process that a pid file names.
 * @returns {ProcessId | undefined} undefined when there is no such file, or its process is gone
 */
export function readPidFile(pidFile) {
  let text;
  try {
    text = readFileSync(pidFile, 'utf8');
  } catch {
    return undefined;
  }
  const [pid, start] = text.trim().split(' ');
  const id = { pid: Number(pid), start: start ?? '' };
  return Number.isInteger(id.pid) && id.pid > 1 && isAlive(id) ? id : undefined;
}

function openLog(file) {
  try {
    if (statSync(file).size > logLimitBytes) renameSync(file, `${file}.1`);
  } catch {
    // No log yet.
  }
  return openSync(file, 'a', 0o644);
}

/**
 * What a backend gets of this environment. The rest is not its business: tokens, npm's own variables, and the mark
 * of a test run, which would make a backend that a test starts again look like a forgotten process.
 */
function plainEnvironment() {
  const names = ['PATH', 'HOME', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'JAVA_HOME'];
  return Object.fromEntries(names.map((name) => [name, process.env[name]]));
}

/**
 * Starts a program that outlives this one: a session of its own, output to a log, a pid file.
 * @param {{file: string, args: string[], env?: Record<string, string | undefined>, cwd?: string, log: string, pidFile: string}} spec
 *   without `env` it gets only what programs usually need of the environment; with `env`, that on top
 * @returns {Promise<ProcessId>}
 * @throws {Error} when the program cannot be executed or ends before its pid file is written
 */
export async function launch(spec) {
  const log = openLog(spec.log);
  try {
    const child = spawn(spec.file, spec.args, {
      cwd: spec.cwd,
      env: { ...plainEnvironment(), ...spec.env, [tagName]: spec.pidFile },
      detached: true,
      stdio: ['ignore', log, log],
    });
    await new Promise((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    child.unref();
    writePidFile(spec.pidFile, child.pid);
    return readPidFile(spec.pidFile) ?? Promise.reject(new Error(`${spec.file} ended at once`));
  } finally {
    closeSync(log);
  }
}

/** All that belongs to a pid file: the process, its descendants, and orphans that carry its tag. */
export function familyOf(pidFile) {
  const id = readPidFile(pidFile);
  const rows = id ? tree(id) : [];
  for (const orphan of taggedWith(tagOf(pidFile))) {
    for (const row of tree(orphan)) if (!rows.some((known) => known.pid === row.pid)) rows.push(row);
  }
  return rows;
}

/**
 * Sends a signal to each of the processes that is still the one meant.
 * @param {ProcessId[]} ids
 * @param {NodeJS.Signals} signal
 */
export function signalAll(ids, signal) {
  for (const id of ids) {
    if (!isAlive(id)) continue;
    try {
      process.kill(id.pid, signal);
    } catch (error) {
      if (error.code !== 'ESRCH') throw error;
    }
  }
}

/** @returns {Promise<boolean>} whether all were gone in time */
export async function waitGone(ids, limitMs) {
  const deadline = Date.now() + limitMs;
  while (ids.some(isAlive)) {
    if (Date.now() > deadline) return false;
    await sleep(pollMs);
  }
  return true;
}

/**
 * Ends what a pid file names, with all descendants: the polite signal first, SIGKILL after the grace period.
 * @param {string} pidFile
 * @param {{signal?: NodeJS.Signals, graceMs?: number}} [options]
 * @returns {Promise<'stopped' | 'killed' | 'absent'>} killed: the grace period was not enough
 * @throws {Error} when a process survives SIGKILL
 */
export async function stopFamily(pidFile, { signal = 'SIGTERM', graceMs = 15_000 } = {}) {
  const family = familyOf(pidFile);
  if (family.length === 0) {
    rmSync(pidFile, { force: true });
    return 'absent';
  }
  const main = readPidFile(pidFile);
  signalAll(family, 'SIGCONT');
  signalAll(main ? [main] : family, signal);
  /** @type {'stopped' | 'killed'} */
  let outcome = 'stopped';
  if (!(await waitGone(family, graceMs)) || familyOf(pidFile).length > 0) {
    outcome = 'killed';
    const rest = [...family, ...familyOf(pidFile)];
    signalAll(rest, 'SIGKILL');
    if (!(await waitGone(rest, 5_000))) {
      throw new Error(
        `process ${rest.filter(isAlive).map((id) => id.pid)} does not end, not even by SIGKILL`,
      );
    }
  }
  rmSync(pidFile, { force: true });
  return outcome;
}
