import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { backends } from './backends.mjs';
import { forgetEngine } from './engine.mjs';
import { stopGateway } from './gateway.mjs';
import { withLock } from './lock.mjs';
import { readPidFile, signalAll, waitGone } from './processes.mjs';
import { forgetPorts, profile } from './profile.mjs';
import { createProgress } from './progress.mjs';

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

/** @returns {Promise<number>} the exit code */
export async function stop() {
  const say = createProgress();
  if (!existsSync(profile('dev').run)) {
    console.log('Nothing runs.');
    return 0;
  }
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
  console.log(asked || ended.length > 0 ? 'Stopped.' : 'Nothing ran.');
  return 0;
}
