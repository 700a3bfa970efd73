import { join } from 'node:path';
import { backends } from '../../compose/backends/backends.mjs';
import { ensurePackages } from '../../compose/install/ensure.mjs';
import { catchSignals, Interrupted, interrupted } from '../../compose/processes/interruption.mjs';
import { withLock } from '../../compose/processes/lock.mjs';
import { writePidFile } from '../../compose/processes/processes.mjs';
import { createProgress } from '../../compose/processes/progress.mjs';
import { makeFolders, profile } from '../../compose/state/profile.mjs';
import { allBackends, areKept, dropBackends, keeperFile, makeRoom, startBackends } from './backends.mjs';

// npm run backends: keeps the backends of the tests until Ctrl-C, for any number of `npm test -- FILE`.

const say = createProgress();

async function main() {
  catchSignals((cause) => say('stop', cause));
  makeFolders(profile('test'));
  if (areKept()) throw new Error('another npm run backends keeps them already.');
  await ensurePackages((line) => say('packages', line));
  // a run of the tests that has backends of its own is let end first
  const lock = join(profile('test').run, 'test.lock');
  const waiting = (pid) => say('backends', `npm test is at work (process ${pid}); waiting for it`);
  await withLock(lock, () => makeRoom(['test']), waiting);
  const set = await backends('test');
  try {
    await withLock(lock, () => startBackends(set, allBackends, say), waiting);
    writePidFile(keeperFile(), process.pid);
    say('backends', 'are kept for npm test -- FILE; Ctrl-C ends them');
    // nothing else keeps this process
    const forever = setInterval(() => undefined, 60_000);
    await interrupted();
    clearInterval(forever);
  } finally {
    await dropBackends(set);
    say('backends', 'stopped');
  }
}

main().then(
  () => process.exit(),
  (error) => {
    if (!(error instanceof Interrupted)) console.error(error.message);
    process.exit(error instanceof Interrupted ? 130 : 1);
  },
);
