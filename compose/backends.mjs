import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { quoted } from './card.mjs';
import { dockerBackends } from './docker-backends.mjs';
import { chooseEngine, demandEngine, forgetEngine, noteEngine } from './engine.mjs';
import { Interrupted } from './interruption.mjs';
import { withLock } from './lock.mjs';
import { nativeBackends } from './native/native-backends.mjs';
import { testPrograms } from './native/test-programs.mjs';
import { forgetPorts, makeFolders, notePorts, profile } from './profile.mjs';
import { demandSecrets, secretsOf } from './secrets.mjs';

/**
 * The backends of one profile, however they run.
 * @typedef {object} BackendSet
 * @property {(names?: string[], progress?: (name: string, line: string) => void) => Promise<Record<string, StartResult>>} start
 *   installs what is missing and brings the named ones (default: all) up, in parallel; those that run are left alone
 * @property {(names: string[], progress: (name: string, line: string) => void) => Promise<void>} [fetch]
 *   brings what can be had before anything starts; never rejects
 * @property {(names?: string[]) => Promise<Record<string, string>>} stop
 * @property {(name: string) => Promise<void>} kill SIGKILL for all of its processes; returns when they are gone
 * @property {(name: string) => Promise<void>} pause connections stay open, nothing answers
 * @property {(name: string) => Promise<void>} resume
 * @property {() => Promise<Record<string, {running: boolean, paused: boolean, ready: boolean, pid?: number}>>} status
 * @property {() => Promise<void>} reset forgets all data; for when none runs
 * @property {(names?: string[]) => Record<string, string>} urls the addresses, as the gateway's variables
 *
 * @typedef {{state: 'running' | 'started' | 'failed', reason?: string, notes?: string[], ms: number}} StartResult
 *   notes: what the user should know although it runs
 */

/**
 * @param {string} name `dev` or `test`
 * @returns {Promise<BackendSet & {profile: import('./profile.mjs').Profile, secrets: Record<string, string>, engine: string}>}
 */
export async function backends(name) {
  const p = profile(name);
  makeFolders(p);
  const context = { p, secrets: secretsOf(p) };
  const engine = await chooseEngine(p);
  const set = engine === 'docker' ? dockerBackends(context) : nativeBackends(context);
  let refused = false;
  const start = async (names, progress) => {
    refused = true;
    demandSecrets(p);
    await demandEngine(engine);
    refused = false;
    const isFirst = noteEngine(p, engine);
    notePorts(p);
    try {
      return await set.start(names, progress);
    } catch (error) {
      // what could not be started at all must not decide how the next start goes about it
      if (isFirst && !(error instanceof Interrupted)) await forgetStart(set, p);
      throw error;
    }
  };
  // whoever could not even begin has nothing to end, and no engine to ask
  const stop = (names) => (refused ? Promise.resolve({}) : set.stop(names));
  return { ...set, start, stop, profile: p, secrets: context.secrets, engine };
}

/** After a start of which nothing came: ends what may be there of it, and forgets the way that was taken. */
async function forgetStart(set, p) {
  await set.stop().catch(() => undefined);
  forgetEngine(p);
  forgetPorts(p);
}

const usage = `node compose/backends.mjs ACTION [--profile dev|test] [NAME ...]
  start    bring them up (default: all four)    stop    end them
  kill     SIGKILL                              status  what runs and answers, as JSON
  pause    SIGSTOP                              resume  SIGCONT
  env      their addresses and what the tests need beside, as NAME=value lines of a shell`;

/** Actions that change what runs wait for each other. */
const lockOf = (set) => join(set.profile.run, 'lock');

const actions = {
  async start(set, names) {
    const progress = (name, line) => console.error(`${name}: ${line}`);
    const result = await withLock(lockOf(set), () => set.start(names, progress));
    console.log(JSON.stringify(result, null, 2));
    return Object.values(result).some((row) => row.state === 'failed') ? 1 : 0;
  },
  async stop(set, names) {
    console.log(JSON.stringify(await withLock(lockOf(set), () => set.stop(names))));
  },
  async status(set) {
    console.log(JSON.stringify(await set.status(), null, 2));
  },
  async env(set, names) {
    const variables = { ...set.urls(names), ...(await testPrograms(set.profile, () => undefined)) };
    for (const [key, value] of Object.entries(variables)) console.log(`${key}=${quoted(value)}`);
  },
};

for (const action of ['kill', 'pause', 'resume']) {
  actions[action] = async (set, names) => {
    if (names === undefined) throw new Error(`name the backend to ${action}`);
    for (const name of names) await set[action](name);
  };
}

async function main(argv) {
  const { values, positionals } = parseArgs({
    args: argv,
    allowPositionals: true,
    options: { profile: { type: 'string', default: 'dev' } },
  });
  const [action = '', ...names] = positionals;
  if (!Object.hasOwn(actions, action)) throw new Error(usage);
  process.exitCode = await actions[action](
    await backends(values.profile),
    names.length > 0 ? names : undefined,
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main(process.argv.slice(2)).catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
