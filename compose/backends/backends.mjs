import { nativeBackends } from '../native/native-backends.mjs';
import { Interrupted } from '../processes/interruption.mjs';
import { demandAccess } from '../state/access.mjs';
import { forgetPorts, makeFolders, notePorts, profile } from '../state/profile.mjs';
import { demandSecrets, secretsOf } from '../state/secrets.mjs';
import { dockerBackends } from './docker-backends.mjs';
import { chooseEngine, demandEngine, forgetEngine, noteEngine } from './engine.mjs';

/**
 * @param {string} name `dev` or `test`
 * @returns {Promise<import('../native/backend-set.mjs').BackendSet & {profile: import('../state/profile.mjs').Profile, secrets: Record<string, string>, engine: string}>}
 */
export async function backends(name) {
  const p = profile(name);
  demandAccess(p);
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
