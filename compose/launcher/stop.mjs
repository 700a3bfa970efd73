import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { backends } from '../backends/backends.mjs';
import { forgetEngine } from '../backends/engine.mjs';
import { lockHolder, withLock } from '../processes/lock.mjs';
import { readPidFile, signalAll, waitGone } from '../processes/processes.mjs';
import { createProgress } from '../processes/progress.mjs';
import { demandAccess } from '../state/access.mjs';
import { checkoutLock, forgetPorts, profile, stateDir } from '../state/profile.mjs';
import { stopGateway } from './gateway.mjs';

/** A launcher in the foreground stops what it started by itself: gateway 25 s, the slowest backend 25 s. */
const launcherLimitMs = 60_000;

async function stopLauncher(p, say) {
  const launcher = readPidFile(join(p.run, 'launcher.pid'));
  if (!launcher) return false;
  say('launcher', `asking process ${launcher.pid} to stop`);
  signalAll([launcher], 'SIGTERM');
  if (!(await waitGone([launcher], launcherLimitMs))) signalAll([launcher], 'SIGKILL');
  return true;
}

/** A start that still fetches Node or packages has begun nothing that could be stopped. */
function nothing(words) {
  const installer = lockHolder(join(stateDir, 'install.lock')) ?? lockHolder(checkoutLock);
  const hint = `process ${installer} is still installing what a start or a test needs; end that one where it runs.`;
  console.log(installer === undefined ? words : `${words.replace('.', '')}, but ${hint}`);
  return 0;
}

/** @returns {Promise<number>} the exit code */
export async function stop() {
  const say = createProgress();
  demandAccess(profile('dev'));
  if (!existsSync(profile('dev').run)) return nothing('Nothing runs.');
  const set = await backends('dev');
  const p = set.profile;
  const asked = await stopLauncher(p, say);
  const waiting = (pid) => say('stop', `a launcher is at work (process ${pid}); waiting for it`);
  const outcomes = await withLock(
    join(p.run, 'lock'),
    async () => {
      const gateway = await stopGateway(p);
      return { gateway, ...(await set.stop()) };
    },
    waiting,
  );
  rmSync(join(p.run, 'launcher.pid'), { force: true });
  rmSync(join(p.dir, 'connection.env'), { force: true });
  forgetEngine(p);
  forgetPorts(p);
  const ended = Object.entries(outcomes).filter(([, outcome]) => outcome !== 'absent');
  for (const [name, outcome] of ended) say(name, outcome);
  if (!asked && ended.length === 0) return nothing('Nothing ran.');
  console.log('Stopped.');
  return 0;
}
