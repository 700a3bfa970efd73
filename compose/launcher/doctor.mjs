import { existsSync, readFileSync, statSync } from 'node:fs';
import { freemem, totalmem } from 'node:os';
import { join } from 'node:path';
import { ensureGateway, hasBuild, hasPackages } from '../install/ensure.mjs';
import { isFit } from '../install/node.mjs';
import { runProgram } from '../processes/run-program.mjs';
import { demandAccess } from '../state/access.mjs';
import { commandLine, profile, stateDir } from '../state/profile.mjs';
import { demandSecrets } from '../state/secrets.mjs';
import { reasonsOf } from './card.mjs';
import { check, runningGateway } from './gateway.mjs';
import {
  askRegistry,
  backendNames,
  demandNative,
  demandStateFolder,
  diskSpace,
  existing,
  likelyNeeds,
  neededBackends,
  takenPorts,
  whyNotNative,
} from './preflight.mjs';
import { currentState } from './status.mjs';

/** Resident, with README's lines sent: the four backends and the gateway. */
const neededMemoryMb = 1_500;

/**
 * What is found of one thing.
 * @typedef {{about: string, words: string, remedy?: string}} Finding remedy: it is wrong, and what helps
 */

/** @returns {Finding} */
function node() {
  const { version } = process;
  if (isFit(version)) return { about: 'Node', words: version };
  return { about: 'Node', words: `${version}, too old for the gateway; a start fetches a newer one` };
}

/** @returns {Promise<Finding>} */
async function stateFolder(p, engine) {
  try {
    demandStateFolder();
    demandAccess(p);
    demandSecrets(p);
    if (engine === 'native' && whyNotNative() === undefined) await demandNative(backendNames);
    return { about: 'state', words: stateDir };
  } catch (error) {
    return { about: 'state', words: stateDir, remedy: error.message };
  }
}

/** @returns {Finding[]} none where the state folder leads nowhere */
function disk() {
  if (!existsSync(existing(stateDir))) return [];
  const { needed, free, isEnough } = diskSpace(true);
  const words = `${free} MB free, a start may take ${needed} MB`;
  const remedy = isEnough ? {} : { remedy: 'make room, or set PORTICO_STATE_DIR' };
  return [{ about: 'disk', words, ...remedy }];
}

/** What the kernel could give to programs now, in MB: caches can go. */
function availableMemory() {
  const kb = existsSync('/proc/meminfo')
    ? /^MemAvailable:\s+(\d+)/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]
    : undefined;
  return Math.round((kb === undefined ? freemem() : Number(kb) * 1024) / 1e6);
}

/** @returns {Finding} */
function memory(anythingRuns) {
  const available = availableMemory();
  const words = `${available} of ${Math.round(totalmem() / 1e6)} MB are free`;
  if (anythingRuns || available >= neededMemoryMb) return { about: 'memory', words };
  const remedy = `all four backends want ${neededMemoryMb} MB: end other programs, or leave services out of the configuration`;
  return { about: 'memory', words, remedy };
}

const ask = (...args) => runProgram('docker', args, { timeoutMs: 5_000 }).then((text) => text.trim());

/** @returns {Promise<Finding>} */
async function docker() {
  const about = 'Docker';
  const engine = await ask('info', '--format', '{{.ServerVersion}}').catch(() => '');
  if (engine === '') return { about, words: 'no engine answers; backends run as processes' };
  const compose = await ask('compose', 'version', '--short').catch(() => '');
  if (compose === '') {
    const remedy =
      process.env.PORTICO_BACKENDS === 'docker' ? { remedy: "install Docker's Compose plugin" } : {};
    return { about, words: `engine ${engine} without Compose v2; backends run as processes`, ...remedy };
  }
  return { about, words: `engine ${engine}, Compose ${compose}` };
}

/** @returns {Finding} */
function platform(engine) {
  const words = `${process.platform} ${process.arch}`;
  const reason = engine === 'docker' ? undefined : whyNotNative();
  if (reason === undefined) return { about: 'platform', words };
  const remedy = `without Docker backends run on Linux with glibc on x64 or arm64, and ${reason}: start a Docker engine`;
  return { about: 'platform', words, remedy };
}

/** @returns {Promise<Finding>} */
async function network() {
  try {
    const { place, reason } = await askRegistry();
    if (reason === undefined) return { about: 'network', words: `${place} answers` };
    const remedy = hasPackages()
      ? {}
      : { remedy: 'fix the network, or name a mirror (npm config set registry) or a proxy (HTTPS_PROXY)' };
    return { about: 'network', words: `${place}, npm's registry, does not answer (${reason})`, ...remedy };
  } catch {
    const remedy = hasPackages() ? {} : { remedy: 'install npm, or add it to PATH' };
    return { about: 'network', words: 'not asked: there is no npm', ...remedy };
  }
}

/** @returns {Promise<{report?: import('./gateway.mjs').Check, findings: Finding[]}>} */
async function configuration() {
  if (!hasPackages() || !hasBuild() || !isFit(process.version)) return { findings: [] };
  try {
    await ensureGateway(() => undefined);
    const report = await check();
    return {
      report,
      findings: [{ about: 'settings', words: `usable; serves ${report.services.join(', ')}` }],
    };
  } catch (error) {
    const remedy = 'correct what is named above, or the variables that it names';
    return { findings: [{ about: 'settings', words: error.message, remedy }] };
  }
}

/** @returns {Promise<Finding>} */
async function ports(p, engine, report) {
  const guess = likelyNeeds(p, undefined);
  const names = report === undefined ? guess.backends : neededBackends(report.backends);
  const gateway = report === undefined ? guess.gateway : report.ports;
  const taken = await takenPorts(p, engine, names, gateway);
  if (taken.length === 0)
    return { about: 'ports', words: `${gateway.join(', ')} and those of ${names.join(', ')} are free` };
  const rows = taken.map(({ port, owner, holder }) => `${port} (${owner}) is taken by ${holder}`);
  const remedy =
    'end those programs, or move away: PORTICO_HTTP_PORT for the gateway, PORTICO_PORT_BASE for backends';
  return { about: 'ports', words: rows.join('; '), remedy };
}

/** The end of a log, as lines of their own. */
function lastLines(p, name) {
  const file = join(p.logs, `${name}.log`);
  if (!existsSync(file) || statSync(file).size === 0) return '';
  const lines = readFileSync(file, 'utf8').trim().split('\n').slice(-5);
  return `\n${lines.map((line) => `             ${line.slice(0, 200)}`).join('\n')}\n             (${file})`;
}

/** Why the last start could not bring a backend, which may never have come to a log. */
function reasonOf(p, name) {
  const env = Object.entries(runningGateway(p)?.env ?? {});
  const told = env
    .filter(([variable]) => variable.endsWith('_MISSING'))
    .flatMap(([, text]) => reasonsOf(text));
  const reason = told.find((line) => line.startsWith(`${name}: `));
  return reason === undefined ? '' : reason.slice(name.length);
}

/** @returns {Finding[]} of what runs, or ought to */
function running(p, { rows }) {
  return rows.map(({ name, words, isWell, isRunning }) => {
    if (isWell && (isRunning || name !== 'gateway')) return { about: name, words };
    const isDown = !isRunning || name === 'gateway';
    const remedy = isDown
      ? `${commandLine('start')} brings up again what is down`
      : `${commandLine('stop')}, then ${commandLine('start')}`;
    return { about: name, words: words + reasonOf(p, name) + lastLines(p, name), remedy };
  });
}

/**
 * Looks at all that a start depends on, changes nothing, and prints one line for each.
 * @returns {Promise<number>} the exit code: 0 when all is well
 */
export async function doctor() {
  const p = profile('dev');
  const state = existsSync(p.run) ? await currentState().catch(() => undefined) : undefined;
  const anythingRuns = state?.rows.some(({ isRunning }) => isRunning) ?? false;
  const engineFinding = await docker();
  const engine = state?.engine ?? (/Compose/.test(engineFinding.words) ? 'docker' : 'native');
  const { report, findings } = await configuration();
  const all = [
    node(),
    platform(engine),
    engineFinding,
    await stateFolder(p, engine),
    ...disk(),
    memory(anythingRuns),
    await network(),
    ...findings,
    ...(anythingRuns && state ? running(p, state) : [await ports(p, engine, report)]),
  ];
  for (const { about, words, remedy } of all) {
    console.log(`${remedy === undefined ? 'ok   ' : 'WRONG'} ${about.padEnd(10)} ${words}`);
    if (remedy !== undefined) console.log(`${''.padEnd(17)}-> ${remedy}`);
  }
  const wrong = all.filter(({ remedy }) => remedy !== undefined).length;
  const told = anythingRuns ? 'All is well.' : 'Nothing runs, and nothing keeps it from starting.';
  console.log(wrong === 0 ? told : `${wrong} of ${all.length} things are wrong.`);
  return wrong === 0 ? 0 : 1;
}
