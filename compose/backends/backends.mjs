import { nativeBackends } from '../native/native-backends.mjs';
import { Interrupted } from '../processes/interruption.mjs';
import { forgetPorts, makeFolders, notePorts, profile } from '../state/profile.mjs';
import { demandSecrets, secretsOf } from '../state/secrets.mjs';
import { dockerBackends } from './docker-backends.mjs';
import { chooseEngine, demandEngine, forgetEngine, noteEngine } from './engine.mjs';

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
 * @returns {Promise<BackendSet & {profile: import('../state/profile.mjs').Profile, secrets: Record<string, string>, engine: string}>}
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
