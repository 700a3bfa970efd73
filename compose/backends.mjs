import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { backendStatus, killBackend, pauseBackend, startBackend, stopBackend } from './native/backend.mjs';
import { kafka } from './native/kafka.mjs';
import { installPackages, missingPackages } from './native/packages.mjs';
import { postgres } from './native/postgres.mjs';
import { rabbitmq } from './native/rabbitmq.mjs';
import { redis } from './native/redis.mjs';
import { makeFolders, profile } from './profile.mjs';
import { secretsOf } from './secrets.mjs';

const all = [redis, postgres, kafka, rabbitmq];

/** @typedef {(name: string, line: string) => void} Progress */

function chosen(names = all.map((backend) => backend.name)) {
  return names.map((name) => {
    const backend = all.find((one) => one.name === name);
    if (!backend) throw new Error(`unknown backend '${name}': use ${all.map((one) => one.name).join(', ')}`);
    return backend;
  });
}

/** Installs what the backends need, each step once. Returns the reason by name for those that cannot be had. */
async function install(p, list, progress) {
  const failed = new Map();
  const wanted = new Map();
  for (const backend of list) wanted.set(backend, await missingPackages(backend, p));
  const packages = [...new Set([...wanted.values()].flat())];
  if (packages.length > 0) {
    await installPackages(packages, (line) => progress('packages', line)).catch((error) => {
      for (const [backend, names] of wanted) if (names.length > 0) failed.set(backend.name, error.message);
    });
  }
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
 * The four backends of a profile.
 * @param {string} name `dev` or `test`
 */
export function backends(name) {
  const p = profile(name);
  makeFolders(p);
  const context = { p, secrets: secretsOf(p) };
  return {
    /**
     * Installs what is missing and brings the named backends up, in parallel.
     * @param {string[]} [names] default: all four
     * @param {Progress} [progress]
     * @returns {Promise<Record<string, {state: 'running' | 'started' | 'failed', reason?: string, ms: number}>>}
     */
    async start(names, progress = () => undefined) {
      const list = chosen(names);
      const failed = await install(p, list, progress);
      const rows = list.map(async (backend) => {
        const begin = Date.now();
        const reason = failed.get(backend.name);
        if (reason !== undefined) return [backend.name, { state: 'failed', reason, ms: 0 }];
        try {
          const state = await startBackend(context, backend);
          progress(
            backend.name,
            state === 'running' ? 'runs already' : `ready after ${Date.now() - begin} ms`,
          );
          return [backend.name, { state, ms: Date.now() - begin }];
        } catch (error) {
          return [backend.name, { state: 'failed', reason: error.message, ms: Date.now() - begin }];
        }
      });
      return Object.fromEntries(await Promise.all(rows));
    },

    /** @param {string[]} [names] */
    async stop(names) {
      const rows = chosen(names).map(async (backend) => [backend.name, await stopBackend(context, backend)]);
      return Object.fromEntries(await Promise.all(rows));
    },

    /** SIGKILL for the backend and its children; returns when they are gone. */
    kill: (one) => killBackend(context, chosen([one])[0]),
    /** SIGSTOP: connections stay open, nothing answers. */
    pause: (one) => pauseBackend(context, chosen([one])[0], 'SIGSTOP'),
    resume: (one) => pauseBackend(context, chosen([one])[0], 'SIGCONT'),

    /** Whether each runs, is paused, and answers a handshake. */
    async status() {
      const rows = all.map(async (backend) => [backend.name, await backendStatus(context, backend)]);
      return Object.fromEntries(await Promise.all(rows));
    },

    /** The addresses, as the gateway's environment variables. */
    urls: (names) => Object.assign({}, ...chosen(names).map((backend) => backend.urls(context))),
    secrets: context.secrets,
    profile: p,
  };
}

const usage =
  'use: node compose/backends.mjs start|stop|kill|pause|resume|status|env [--profile dev|test] [name ...]';

async function main(argv) {
  const { values, positionals } = parseArgs({
    args: argv,
    allowPositionals: true,
    options: { profile: { type: 'string', default: 'dev' } },
  });
  const [action = '', ...names] = positionals;
  const set = backends(values.profile);
  const some = names.length > 0 ? names : undefined;
  if (action === 'start') {
    const result = await set.start(some, (name, line) => console.error(`${name}: ${line}`));
    console.log(JSON.stringify(result, null, 2));
    if (Object.values(result).some((row) => row.state === 'failed')) process.exitCode = 1;
  } else if (action === 'stop') console.log(JSON.stringify(await set.stop(some)));
  else if (action === 'status') console.log(JSON.stringify(await set.status(), null, 2));
  else if (action === 'env')
    for (const [key, value] of Object.entries(set.urls(some))) console.log(`${key}=${value}`);
  else if (['kill', 'pause', 'resume'].includes(action) && names.length > 0)
    for (const name of names) await set[action](name);
  else throw new Error(usage);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main(process.argv.slice(2)).catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
