import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { throwIfInterrupted } from '../processes/interruption.mjs';
import { demandFree } from '../processes/ports.mjs';
import { readProcess } from '../processes/process-table.mjs';
import {
  familyOf,
  launch,
  readPidFile,
  signalAll,
  stopFamily,
  tagged,
  waitGone,
} from '../processes/processes.mjs';
import { commandLine } from '../state/profile.mjs';
import { commandAs, runnerFor } from './unprivileged.mjs';

/**
 * What the launcher must know of a backend; each file beside this one exports one.
 * @typedef {object} Backend
 * @property {string} name
 * @property {(keyof import('../state/profile.mjs').Ports)[]} ports what it listens on; the first is the clients'
 * @property {NodeJS.Signals} stopSignal the polite one
 * @property {number} graceMs how long a polite stop may take
 * @property {(installer: import('./programs/programs.mjs').Installer) => Promise<unknown>} install
 *   brings its programs; quick when they are there
 * @property {(p: import('../state/profile.mjs').Profile) => string[]} [keeps] folders of programs that its data still need
 * @property {(context: Running, progress: (line: string) => void) => Promise<ProcessSpec[]>} processes writes the configuration, says what to run
 * @property {(context: Context) => Promise<void>} [prepare] what must be there before clients come; may run often
 * @property {(context: Context) => Promise<void>} ready a handshake; throws while the backend is not ready, WrongPassword where
 *   it will not be
 * @property {(context: Context, words: string) => string | undefined} [explain] why it ended at start, from the end of
 *   its log; undefined: the log says it best
 * @property {(context: Context) => string[]} [notes] what the user should know of it although it runs
 * @property {(context: Context) => Record<string, string>} urls its addresses, as the gateway's environment
 *
 * @typedef {{p: import('../state/profile.mjs').Profile, secrets: Record<string, string>}} Context
 * @typedef {Context & {runner: import('./unprivileged.mjs').Runner}} Running
 * @typedef {{name: string, file: string, args: string[], env?: Record<string, string>, cwd: string}} ProcessSpec
 */

/** A backend that answers and takes another password than ours: waiting does not change its mind. */
export class WrongPassword extends Error {}

const startLimitMs = 90_000;
const pollMs = 100;

const pidFileOf = (p, name) => join(p.run, `${name}.pid`);
/** The user's may be missing on this system (ssh brings it along), without which Redis does not start; this one never is. */
const locale = { LC_ALL: 'C.UTF-8' };
/** RabbitMQ's port mapper is a process beside it, with a pid file of its own. */
const companions = { rabbitmq: ['rabbitmq-epmd'], postgres: ['postgres-setup'], kafka: ['kafka-setup'] };
/**
 * The environment of what prepares a backend's data: when its launcher is killed it goes on, and must have ended before
 * the next one touches the same folder.
 * @param {import('../state/profile.mjs').Profile} p
 * @param {'postgres' | 'kafka'} name
 */
export const setupEnvironment = (p, name) => ({ ...locale, ...tagged(pidFileOf(p, `${name}-setup`)) });
const pidFilesOf = (p, backend) =>
  [backend.name, ...(companions[backend.name] ?? [])].map((n) => pidFileOf(p, n));

/** @throws {Error} that names the taken port, who has it, and the way out */
async function demandFreePorts(p, backend) {
  const remedy = 'set PORTICO_PORT_BASE to a free block of ports (the default is 18070)';
  for (const name of backend.ports) await demandFree(p.ports[name], backend.name, remedy);
}

/** The end of a backend's log, which is the best reason for a failed start. */
function lastWords(p, name) {
  try {
    const log = readFileSync(join(p.logs, `${name}.log`), 'utf8');
    const lines = stripVTControlCharacters(log).trim().split('\n');
    return lines.slice(-4).join(' | ').slice(-600);
  } catch {
    return 'no log';
  }
}

const wrongPassword = (p, name) =>
  new Error(
    `${name} refuses the password of ${join(p.dir, 'secrets.env')}, which was changed since it was started: put the old one back, or ${commandLine('stop')}, after which ${commandLine('start')} sets the new one and keeps the data`,
  );

/** Polls the handshake until it succeeds, the process ends, or the time is over. */
async function waitReady(context, backend, limitMs) {
  const deadline = Date.now() + limitMs;
  for (;;) {
    throwIfInterrupted();
    try {
      await backend.prepare?.(context);
      return await backend.ready(context);
    } catch (error) {
      if (error instanceof WrongPassword) throw wrongPassword(context.p, backend.name);
      if (!readPidFile(pidFileOf(context.p, backend.name))) {
        const words = lastWords(context.p, backend.name);
        throw new Error(
          backend.explain?.(context, words) ?? `${backend.name} ended at start; its log says: ${words}`,
        );
      }
      if (Date.now() > deadline)
        throw new Error(`${backend.name} is not ready after ${limitMs / 1000} s: ${error.message}`);
    }
    await sleep(pollMs);
  }
}

/**
 * Brings a backend up, whatever state an earlier start left it in.
 * @param {Context} context
 * @param {Backend} backend
 * @param {(line: string) => void} progress
 * @returns {Promise<'running' | 'started'>} running: it was up already and nothing was done
 * @throws {Error} with the reason: a taken port, the log's last words, or the handshake's answer
 */
export async function startBackend(context, backend, progress) {
  const { p } = context;
  const main = readPidFile(pidFileOf(p, backend.name));
  if (main) {
    const paused = familyOf(pidFileOf(p, backend.name)).filter((id) => readProcess(id.pid)?.state === 'T');
    signalAll(paused, 'SIGCONT');
    await waitReady(context, backend, startLimitMs);
    return paused.length > 0 ? 'started' : 'running';
  }
  for (const pidFile of pidFilesOf(p, backend)) await stopFamily(pidFile, { graceMs: 2_000 });
  await demandFreePorts(p, backend);
  const runner = await runnerFor(p.run);
  for (const spec of await backend.processes({ ...context, runner }, progress)) {
    const { name, file, args, ...rest } = spec;
    const command = commandAs(runner, file, args);
    const env = { ...locale, ...rest.env };
    await launch({ ...rest, ...command, env, log: join(p.logs, `${name}.log`), pidFile: pidFileOf(p, name) });
  }
  await waitReady(context, backend, startLimitMs);
  return 'started';
}

/** Ends a backend and all of its processes. */
export async function stopBackend({ p }, backend) {
  const [, ...others] = pidFilesOf(p, backend);
  const { stopSignal: signal, graceMs } = backend;
  const outcome = await stopFamily(pidFileOf(p, backend.name), { signal, graceMs });
  for (const pidFile of others) await stopFamily(pidFile, { graceMs: 2_000 });
  return outcome;
}

/** Takes a backend down without warning, as a crash or the kernel would. */
export async function killBackend({ p }, backend) {
  const family = pidFilesOf(p, backend).flatMap(familyOf);
  signalAll(family, 'SIGKILL');
  if (!(await waitGone(family, 10_000))) throw new Error(`${backend.name} survives SIGKILL`);
}

/** Stops a backend's processes in their tracks, or lets them go on: connections stay open, nothing answers. */
export function pauseBackend({ p }, backend, signal) {
  signalAll(pidFilesOf(p, backend).flatMap(familyOf), signal);
}

/** @returns {Promise<{running: boolean, paused: boolean, ready: boolean, pid?: number}>} */
export async function backendStatus(context, backend) {
  const id = readPidFile(pidFileOf(context.p, backend.name));
  if (!id) return { running: false, paused: false, ready: false };
  const paused = readProcess(id.pid)?.state === 'T';
  const ready =
    !paused &&
    (await backend.ready(context).then(
      () => true,
      () => false,
    ));
  return { running: true, paused, ready, pid: id.pid };
}
