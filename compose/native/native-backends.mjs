import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { withLock } from '../lock.mjs';
import { stateDir } from '../profile.mjs';
import { backendStatus, killBackend, pauseBackend, startBackend, stopBackend } from './backend.mjs';
import { kafka } from './kafka.mjs';
import { installPackages, missingPackages } from './packages.mjs';
import { postgres } from './postgres.mjs';
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

/** Installs system packages. Returns, by name, why a backend cannot be had. */
async function installSystemPackages(p, list, progress) {
  const failed = new Map();
  const wanted = new Map();
  for (const backend of list) wanted.set(backend, await missingPackages(backend, p));
  const packages = [...new Set([...wanted.values()].flat())];
  if (packages.length === 0) return failed;
  try {
    await installPackages(packages, (line) => progress('packages', line));
  } catch (error) {
    // What apt has managed nevertheless is looked at again: one package out of reach must not cost the others.
    for (const backend of list) {
      const names = await missingPackages(backend, p);
      if (names.length > 0) failed.set(backend.name, error.message);
    }
  }
  return failed;
}

/** Installs all that the backends need, each step once. */
async function install(p, list, progress) {
  const failed = await installSystemPackages(p, list, progress);
  const rest = list.filter((backend) => !failed.has(backend.name) && backend.installed?.(p) === false);
  await Promise.all(
    rest.map(async (backend) => {
      progress(backend.name, 'installing');
      try {
        await backend.install(p, (line) => progress(backend.name, line));
      } catch (error) {
        failed.set(backend.name, error.message);
      }
    }),
  );
  return failed;
}

/**
 * Installs what backends need to run as processes, without starting them.
 * @param {import('../profile.mjs').Profile} p
 * @param {string[] | undefined} names
 * @param {(name: string, line: string) => void} progress
 * @returns {Promise<Map<string, string>>} by name, why one cannot be had
 */
export function installNative(p, names, progress) {
  // Two profiles, or two launchers, share what is installed.
  return withLock(join(stateDir, 'install.lock'), () => install(p, chosen(names), progress));
}

/** One backend's start, as a result instead of an exception. */
async function startOne(context, backend, progress) {
  const begin = Date.now();
  try {
    const state = await startBackend(context, backend);
    progress(backend.name, state === 'running' ? 'runs already' : `ready after ${Date.now() - begin} ms`);
    const note = backend.note?.(context);
    return { state, ms: Date.now() - begin, ...(note && { note }) };
  } catch (error) {
    return { state: 'failed', reason: error.message, ms: Date.now() - begin };
  }
}

/**
 * The four backends as processes of this machine.
 * @param {import('./backend.mjs').Context} context
 * @returns {import('../backends.mjs').BackendSet}
 */
export function nativeBackends(context) {
  const { p } = context;
  const signal = (name, what) => pauseBackend(context, chosen([name])[0], what);
  return {
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
