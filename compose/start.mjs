import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { backends } from './backends.mjs';
import { card, writeConnection } from './card.mjs';
import { ensureBuild, ensurePackages } from './ensure.mjs';
import {
  check,
  demandGatewayPort,
  gatewayEnvironment,
  missingServices,
  runningGateway,
  startGateway,
  stopGateway,
  waitReady,
  withDerivedTokens,
  withMissing,
} from './gateway.mjs';
import { catchSignals, Interrupted, interrupted, interruption } from './interruption.mjs';
import { withLock } from './lock.mjs';
import { readPidFile, writePidFile } from './processes.mjs';
import { root, stateDir } from './profile.mjs';
import { createProgress } from './progress.mjs';

const usage = `npm start                     start backends and gateway; Ctrl-C stops them
npm start -- --detach         the same, but return when all is ready; npm stop ends it
npm start -- --config FILE    with a configuration of one's own`;

function options() {
  const { values } = parseArgs({
    options: {
      detach: { type: 'boolean', default: false },
      config: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  // npm runs scripts in the project's folder; a path is meant as seen from where the user stands.
  const from = process.env.INIT_CWD ?? process.cwd();
  return { ...values, config: values.config === undefined ? undefined : resolve(from, values.config) };
}

/** The program and its packages, what the configuration asks for, and a port that is free: before anything starts. */
async function prepare(p, config, say) {
  await withLock(join(stateDir, 'install.lock'), async () => {
    await ensurePackages((line) => say('packages', line));
    await ensureBuild((line) => say('build', line));
  });
  const report = await check(config);
  await demandGatewayPort(p, report);
  return report;
}

/** @returns what to tell the gateway of the backends: the addresses, and why some cannot be had */
async function startBackends(set, report, begun, say) {
  const needed = Object.keys(report.backends).filter((name) => report.backends[name] === 'needed');
  begun.backends = needed;
  const results = needed.length > 0 ? await set.start(needed, say) : {};
  begun.backends = needed.filter((name) => results[name].state !== 'running');
  if (interruption.aborted) throw new Interrupted();
  const lost = needed.filter((name) => results[name].state === 'failed');
  for (const name of lost) say(name, `NOT AVAILABLE: ${results[name].reason}`);
  return {
    secrets: set.secrets,
    urls: set.urls(needed),
    failed: Object.fromEntries(lost.map((name) => [name, results[name].reason])),
    notes: needed.flatMap((name) => results[name].notes ?? []),
  };
}

/** Brings everything up that is not up; `begun` collects what this launcher must take down again. */
async function bringUp(set, config, begun, say) {
  const p = set.profile;
  const running = runningGateway(p);
  if (running !== undefined && config !== undefined && config !== running.config)
    throw new Error(
      `it runs already, with ${running.config ?? 'config/portico.yaml'}; npm stop ends that one`,
    );
  const report = running?.report ?? (await prepare(p, config, say));
  const made = await startBackends(set, report, begun, say);
  const wanted = await withDerivedTokens(gatewayEnvironment(report, made), config);
  const env = running === undefined ? wanted : withMissing(running.env, wanted);
  let from = 0;
  if (running === undefined) {
    begun.gateway = true;
    from = await startGateway(p, report, wanted, config);
  }
  const down = await waitReady(p, report, env, missingServices(report, env), from);
  const changed = running === undefined || begun.backends.length > Object.keys(made.failed).length;
  return { report, env, down, notes: made.notes, already: running !== undefined, changed };
}

/** Takes down what this launcher started, the gateway first. */
async function takeDown(set, begun, say) {
  say('stop', 'stopping');
  if (begun.gateway) await stopGateway(set.profile);
  if (begun.backends.length > 0) await set.stop(begun.backends);
  say('stop', 'stopped');
}

/** Waits for a signal or the gateway's end. */
async function stay(p) {
  const gateway = join(p.run, 'gateway.pid');
  const gone = new Promise((settle) => {
    const timer = setInterval(() => {
      if (readPidFile(gateway)) return;
      clearInterval(timer);
      settle('gone');
    }, 500);
    interruption.addEventListener('abort', () => clearInterval(timer), { once: true });
  });
  return Promise.race([interrupted().then(() => 'signal'), gone]);
}

async function main() {
  const { detach, config, help } = options();
  if (help) return console.log(usage);
  const say = createProgress();
  catchSignals((cause) => say('stop', cause));
  const set = await backends('dev');
  const p = set.profile;
  const begun = { backends: [], gateway: false };
  const lock = join(p.run, 'lock');
  const waiting = (pid) => say('start', `another launcher is at work (process ${pid}); waiting for it`);
  let up;
  try {
    up = await withLock(
      lock,
      async () => {
        const result = await bringUp(set, config, begun, say);
        if (!result.already && !detach) writePidFile(join(p.run, 'launcher.pid'), process.pid);
        return result;
      },
      waiting,
    );
  } catch (error) {
    if (begun.gateway || begun.backends.length > 0) await withLock(lock, () => takeDown(set, begun, say));
    throw error;
  }
  const file = writeConnection(p, up.report, up.env);
  const logs = `${relative(root, p.logs) || p.logs}/`;
  console.log(card(up.report, up.env, { file, down: up.down, notes: up.notes, logs }));
  if (up.already) {
    console.log(
      up.changed ? 'It ran already; what had died is up again.' : 'It runs already; nothing was changed.',
    );
    return;
  }
  if (detach) return console.log('It runs in the background. npm stop ends it.');
  console.log('Ctrl-C stops it.');
  const why = await stay(p);
  if (why === 'gone') say('gateway', `the gateway has ended; see ${join(p.logs, 'gateway.log')}`);
  await withLock(lock, () => takeDown(set, begun, say));
  if (why === 'gone') process.exitCode = 1;
}

main().then(
  () => process.exit(),
  (error) => {
    if (!(error instanceof Interrupted)) console.error(`\nPortico did not start: ${error.message}`);
    process.exit(error instanceof Interrupted ? 130 : (error.exitCode ?? 1));
  },
);
