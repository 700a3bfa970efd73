import { spawn } from 'node:child_process';
import { watch } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { context } from 'esbuild';
import { backends } from '../backends/backends.mjs';
import { gatewayBuild } from '../install/build.mjs';
import { buildConsole } from '../install/build-console.mjs';
import { ensureGateway, forgetBuild } from '../install/ensure.mjs';
import { catchSignals, Interrupted, interrupted, interruption } from '../processes/interruption.mjs';
import { withLock } from '../processes/lock.mjs';
import { createProgress } from '../processes/progress.mjs';
import { root } from '../state/profile.mjs';
import { card, writeConnection } from './card.mjs';
import { consoleLink } from './console-link.mjs';
import { runningGateway, startGateway, stopGateway, waitReady } from './gateway.mjs';
import { bringUp, lookAhead, takeDown } from './start.mjs';

// npm run dev [-- --config FILE]: as npm start, and whenever a file of src has changed: compile, restart the gateway.

const say = createProgress();
const restartLimitMs = 10_000;
const settleMs = 50;
const pageFolder = join('console', 'page');

/**
 * Calls back when what has changed is compiled, without a look at types. An editor writes a file in several steps, so it
 * waits for them to end.
 */
async function watchSources(onCompiled) {
  const gateway = await context({ ...gatewayBuild, logLevel: 'silent' });
  let timer;
  const compile = () =>
    gateway.rebuild().then(onCompiled, (error) => {
      say('build', `${error.message}\nthe gateway goes on as it was`);
    });
  const compilePage = () =>
    buildConsole(true).then(onCompiled, (error) =>
      say('build', `${error.message}\nthe console stays as it was`),
    );
  let pageTimer;
  const files = watch(join(root, 'src'), { recursive: true }, (_, name) => {
    if (name?.startsWith(pageFolder)) {
      clearTimeout(pageTimer);
      pageTimer = setTimeout(compilePage, settleMs);
    } else if (name?.endsWith('.ts')) {
      clearTimeout(timer);
      timer = setTimeout(compile, settleMs);
    }
  });
  return async () => {
    files.close();
    await gateway.dispose();
  };
}

/** Says what is wrong with the types, some seconds later. */
function watchTypes() {
  const tsc = join(root, 'node_modules/.bin/tsc');
  const args = ['-p', join(root, 'tsconfig.json'), '--noEmit', '--watch', '--preserveWatchOutput'];
  const child = spawn(tsc, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (/error TS/.test(line)) say('types', line);
  });
  return child;
}

/** One restart after the other; changes during one lead to one more. */
function restarter(p, up, config) {
  let wanted = 0;
  let work = Promise.resolve();
  const restart = async (number) => {
    if (number !== wanted || interruption.aborted) return;
    const begin = Date.now();
    try {
      await stopGateway(p);
      const from = await startGateway(p, up.report, up.env, config);
      const down = await Promise.race([waitReady(p, up.report, up.env, [], from), late()]);
      for (const line of down) say('gateway', line);
      say('gateway', `restarted in ${((Date.now() - begin) / 1000).toFixed(1)} s`);
    } catch (error) {
      if (!(error instanceof Interrupted)) say('gateway', error.message);
    }
  };
  return () => {
    wanted += 1;
    const number = wanted;
    work = work.then(() => restart(number));
  };
}

const late = () =>
  new Promise((resolve) => {
    setTimeout(() => resolve(['it is not ready yet']), restartLimitMs).unref();
  });

async function main() {
  const { values } = parseArgs({ options: { config: { type: 'string' } } });
  catchSignals((cause) => say('stop', cause));
  const known = await lookAhead(values.config);
  await ensureGateway(say);
  const set = await backends('dev');
  const p = set.profile;
  if (runningGateway(p) !== undefined) throw new Error('npm start runs: npm stop ends it.');
  const begun = { backends: [], gateway: false };
  const lock = join(p.run, 'lock');
  let types;
  let closeSources;
  try {
    const up = await withLock(lock, () => bringUp(set, values.config, begun, say, known));
    const file = writeConnection(p, up.report, up.env);
    console.log(
      card(up.report, up.env, {
        file,
        down: up.down,
        notes: up.notes,
        logs: p.logs,
        console: await consoleLink(up.report, up.env),
      }),
    );
    forgetBuild();
    closeSources = await watchSources(restarter(p, up, values.config));
    types = watchTypes();
    say('watch', 'src; Ctrl-C ends gateway and backends');
    await interrupted();
  } finally {
    types?.kill();
    await closeSources?.();
    if (begun.gateway || begun.backends.length > 0) await withLock(lock, () => takeDown(set, begun, say));
  }
}

main().then(
  () => process.exit(),
  (error) => {
    if (!(error instanceof Interrupted)) console.error(error.message);
    process.exit(error instanceof Interrupted ? 130 : 1);
  },
);
