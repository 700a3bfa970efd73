import { join } from 'node:path';
import { backends } from '../backends/backends.mjs';
import { chooseEngine } from '../backends/engine.mjs';
import { ensureGateway, hasBuild, hasPackages } from '../install/ensure.mjs';
import { catchSignals, Interrupted, interrupted, interruption } from '../processes/interruption.mjs';
import { withLock } from '../processes/lock.mjs';
import { readPidFile, writePidFile } from '../processes/processes.mjs';
import { createProgress } from '../processes/progress.mjs';
import { demandAccess } from '../state/access.mjs';
import { commandLine, profile } from '../state/profile.mjs';
import { cards } from '../state/services.mjs';
import { askGateway } from './ask-gateway.mjs';
import { card, writeConnection } from './card.mjs';
import { consoleLink } from './console-link.mjs';
import {
  check,
  demandGatewayPort,
  derivedTokens,
  gatewayEnvironment,
  ignoredSettings,
  missingServices,
  noteAgain,
  runningGateway,
  startGateway,
  stopGateway,
  waitReady,
  withMissing,
} from './gateway.mjs';
import { demandPorts, likelyNeeds, neededBackends, preflight } from './preflight.mjs';

/**
 * The program and its packages, what the configuration asks for, and ports that are free: before anything starts.
 * @param {import('./gateway.mjs').Check} [known] what the configuration asks for, where that was asked already: it costs
 *   most of a second
 */
async function prepare(set, config, say, known) {
  const { profile: p, engine } = set;
  // The programs come while npm and the compiler are at work; what fails is tried again, and told of, when they are started.
  const early = hasPackages() && hasBuild() ? undefined : set.fetch?.(likelyNeeds(p, config).backends, say);
  await ensureGateway(say);
  await early;
  const report = known ?? (await check(config));
  await demandGatewayPort(p, report);
  await demandPorts(p, engine, neededBackends(report.backends), []);
  return report;
}

/** @returns what to tell the gateway of the backends: the addresses, and why some cannot be had */
async function startBackends(set, needed, begun, say) {
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

/**
 * Brings everything up that is not up; `begun` collects what this launcher must take down again.
 * @param {import('./gateway.mjs').Check} [known] what `lookAhead` found out
 */
export async function bringUp(set, config, begun, say, known) {
  const p = set.profile;
  const running = runningGateway(p);
  if (running !== undefined && config !== undefined && config !== running.config)
    throw new Error(
      `it runs already, with ${running.config ?? 'config/portico.yaml'}; ${commandLine('stop')} ends that one`,
    );
  const report = running?.report ?? (await prepare(set, config, say, known));
  const needed = neededBackends(report.backends);
  const planned = { secrets: set.secrets, urls: set.urls(needed), failed: {} };
  const deriving = derivedTokens(gatewayEnvironment(report, planned), config);
  deriving.catch(() => undefined); // told of where it is awaited: what starts meanwhile must be known first
  const made = await startBackends(set, needed, begun, say);
  const wanted = { ...gatewayEnvironment(report, made), ...(await deriving) };
  const env = running === undefined ? wanted : withMissing(running.env, wanted);
  let from = 0;
  if (running !== undefined) noteAgain(p, running, env);
  else {
    begun.gateway = true;
    from = await startGateway(p, report, wanted, config);
  }
  const down = await waitReady(p, report, env, missingServices(report, env), from);
  const changed = running === undefined || begun.backends.length > Object.keys(made.failed).length;
  const ignored = running === undefined ? [] : ignoredSettings(running);
  return { report, env, down, notes: made.notes, already: running !== undefined, changed, ignored };
}

/** Takes down what this launcher started, the gateway first. */
export async function takeDown(set, begun, say) {
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

/** How long the gateway may take to name its keys, in ms: it has just said that it runs. */
const KEYS_MS = 5_000;

/**
 * What services say that credentials are by now: after a rotation signing keys are not those of the configuration.
 * @returns {Promise<Record<string, string>>} nothing where the gateway cannot say
 */
async function toldCredentials(report, env) {
  const told = {};
  for (const service of report.services) {
    const [login, ...others] = cards[service]?.credentials ?? [];
    const token = login && env[login.variable];
    for (const path of new Set(others.flatMap(({ toldAt }) => toldAt?.path ?? []))) {
      const reply = token ? await replyOf(`${report.urls[service]}${path}`, token) : {};
      for (const { variable, toldAt } of others)
        if (toldAt?.path === path && reply[toldAt.member]) told[variable] = reply[toldAt.member];
    }
  }
  return told;
}

/** @returns {Promise<Record<string, string>>} what stands in a reply; nothing where there is none */
async function replyOf(url, token) {
  try {
    const reply = await askGateway(url, { token, timeoutMs: KEYS_MS });
    return reply.ok ? /** @type {any} */ (await reply.json()) : {};
  } catch {
    return {};
  }
}

/**
 * What would keep it from starting, before a folder is made or anything is fetched.
 * @returns {Promise<import('./gateway.mjs').Check | undefined>} what the configuration asks for, where that can be told
 */
export async function lookAhead(config) {
  const p = profile('dev');
  demandAccess(p);
  if (runningGateway(p) !== undefined) return undefined;
  const engine = await chooseEngine(p);
  const report = hasPackages() && hasBuild() ? await check(config) : undefined;
  await preflight(p, engine, report, config);
  return report;
}

/**
 * @param {{detach?: boolean, config?: string}} options config: an absolute path
 * @returns {Promise<number>} the exit code
 */
export async function start({ detach = false, config }) {
  const say = createProgress();
  catchSignals((cause) => say('stop', cause));
  const known = await lookAhead(config);
  const set = await backends('dev');
  const p = set.profile;
  const begun = { backends: [], gateway: false };
  const lock = join(p.run, 'lock');
  const waiting = (pid) => say('start', `another launcher is at work (process ${pid}); waiting for it`);
  const end = () => withLock(lock, () => takeDown(set, begun, say), waiting, false);
  let up;
  try {
    up = await withLock(
      lock,
      async () => {
        const result = await bringUp(set, config, begun, say, known);
        if (!result.already && !detach) writePidFile(join(p.run, 'launcher.pid'), process.pid);
        return result;
      },
      waiting,
    );
  } catch (error) {
    if (begun.gateway || begun.backends.length > 0) await end();
    throw error;
  }
  up.env = { ...up.env, ...(await toldCredentials(up.report, up.env)) };
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
  const code = up.down.length > 0 || missingServices(up.report, up.env).length > 0 ? 1 : 0;
  if (up.already) {
    console.log(
      up.changed ? 'It ran already; what had died is up again.' : 'It runs already; nothing was changed.',
    );
    if (up.ignored.length > 0)
      console.log(
        `Not taken over: ${up.ignored.join(', ')}. It runs with other values; ${commandLine('stop')} ends that one.`,
      );
    return code;
  }
  if (detach) {
    console.log(`It runs in the background. ${commandLine('stop')} ends it.`);
    return code;
  }
  console.log('Ctrl-C stops it.');
  const why = await stay(p);
  if (why === 'gone') say('gateway', `the gateway has ended; see ${join(p.logs, 'gateway.log')}`);
  await end();
  return why === 'gone' ? 1 : code;
}
