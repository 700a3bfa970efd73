import { mkdirSync, rmSync } from 'node:fs';
import { Interrupted } from '../processes/interruption.mjs';
import { withLock } from '../processes/lock.mjs';
import { profile, profileNames } from '../state/profile.mjs';
import { backendStatus, killBackend, pauseBackend, startBackend, stopBackend } from './backend.mjs';
import { kafka } from './kafka.mjs';
import { postgres } from './postgres.mjs';
import { programInstaller, programsLock } from './programs/programs.mjs';
import { rabbitmq } from './rabbitmq.mjs';
import { redis } from './redis.mjs';

const all = [redis, postgres, kafka, rabbitmq];

function chosen(names = all.map((backend) => backend.name)) {
  return names.map((name) => {
    const backend = all.find((one) => one.name === name);
    if (!backend) throw new Error(`unknown backend '${name}': use ${all.map((one) => one.name).join(', ')}`);
    return backend;
  });
}

/** Brings all programs that the backends need, side by side. Returns, by name, why a backend cannot be had. */
async function install(p, list, progress, lockedOnly) {
  const failed = new Map();
  const installer = programInstaller(p, (line) => progress('programs', line), lockedOnly);
  // programs run as another user than the one who fetches them, who may keep his files to himself
  const mask = process.umask(0o022);
  try {
    await Promise.all(
      list.map((backend) =>
        backend.install(installer).catch((error) => {
          if (error instanceof Interrupted) throw error;
          failed.set(backend.name, error.message);
        }),
      ),
    );
  } finally {
    process.umask(mask);
  }
  // another profile's data may need what this one's do not
  const profiles = profileNames.map(profile);
  const kept = all.flatMap((backend) => profiles.flatMap((one) => backend.keeps?.(one) ?? []));
  if (failed.size === 0) installer.tidy(kept);
  return failed;
}

/**
 * Installs what backends need to run as processes, without starting them.
 * @param {import('../state/profile.mjs').Profile} p
 * @param {string[] | undefined} names
 * @param {(name: string, line: string) => void} progress
 * @param {boolean} [lockedOnly] only what the lock file names
 * @returns {Promise<Map<string, string>>} by name, why one cannot be had
 */
export function installNative(p, names, progress, lockedOnly = false) {
  // Two profiles, or two launchers, share what is installed.
  return withLock(programsLock(p), () => install(p, chosen(names), progress, lockedOnly));
}

/** One backend's start, as a result instead of an exception. */
async function startOne(context, backend, progress) {
  const begin = Date.now();
  try {
    const state = await startBackend(context, backend, (line) => progress(backend.name, line));
    progress(backend.name, state === 'running' ? 'runs already' : `ready after ${Date.now() - begin} ms`);
    return { state, ms: Date.now() - begin, notes: backend.notes?.(context) ?? [] };
  } catch (error) {
    return { state: 'failed', reason: error.message, ms: Date.now() - begin };
  }
}

/**
 * The four backends as processes of this machine.
 * @param {import('./backend.mjs').Context} context
 * @returns {import('./backend-set.mjs').BackendSet}
 */
export function nativeBackends(context) {
  const { p } = context;
  const signal = (name, what) => pauseBackend(context, chosen([name])[0], what);
  return {
    async fetch(names, progress) {
      await installNative(p, names, progress, true).catch(() => undefined);
    },
    async start(names, progress = () => undefined) {
      const failed = await installNative(p, names, progress);
      const rows = chosen(names).map(async (backend) => {
        const reason = failed.get(backend.name);
        if (reason !== undefined) return [backend.name, { state: 'failed', reason, ms: 0 }];
        return [backend.name, await startOne(context, backend, progress)];
      });
      return Object.fromEntries(await Promise.all(rows));
    },
    async stop(names) {
      const rows = chosen(names).map(async (backend) => [backend.name, await stopBackend(context, backend)]);
      return Object.fromEntries(await Promise.all(rows));
    },
    kill: (name) => killBackend(context, chosen([name])[0]),
    pause: async (name) => signal(name, 'SIGSTOP'),
    resume: async (name) => signal(name, 'SIGCONT'),
    async status() {
      const rows = all.map(async (backend) => [backend.name, await backendStatus(context, backend)]);
      return Object.fromEntries(await Promise.all(rows));
    },
    async reset() {
      rmSync(p.data, { recursive: true, force: true });
      mkdirSync(p.data, { recursive: true });
    },
    urls: (names) => Object.assign({}, ...chosen(names).map((backend) => backend.urls(context))),
  };
}
