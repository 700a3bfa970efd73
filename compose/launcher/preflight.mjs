import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  realpathSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { createConnection } from 'node:net';
import { dirname, join } from 'node:path';
import { demandEngine } from '../backends/engine.mjs';
import { demandCheckout, hasPackages } from '../install/ensure.mjs';
import { fetchedNode, npm } from '../install/fetch-node.mjs';
import { isFit } from '../install/node.mjs';
import { demandFolderName } from '../native/folder-names.mjs';
import { demandUnpacking } from '../native/programs/unpack.mjs';
import { runnerFor } from '../native/unprivileged.mjs';
import { holderOf, portError } from '../processes/ports.mjs';
import { environmentOf, listenerIdOf } from '../processes/process-table.mjs';
import { readPidFile, tagName } from '../processes/processes.mjs';
import { portsOf, stateDir } from '../state/profile.mjs';
import { demandSecrets } from '../state/secrets.mjs';

/**
 * What must hold before a start changes or fetches anything. Each throws one sentence that says what is wrong and what
 * fixes it.
 */

/** Megabytes of disk that a start takes once, measured; a fifth more, since they were measured on one machine. */
const spaceMb = { node: 240, packages: 260, programs: 900, data: 200 };
const answerLimitMs = 5_000;

export const backendNames = ['redis', 'postgres', 'kafka', 'rabbitmq'];

/** Variables by which a backend of one's own is named. */
const addressOf = {
  redis: 'PORTICO_REDIS_URL',
  postgres: 'PORTICO_DATABASE_URL',
  kafka: 'PORTICO_KAFKA_BROKERS',
  rabbitmq: 'PORTICO_RABBITMQ_URL',
};

/** Whether there is a file, a folder or a link, wherever it leads, that this user can see. */
function isSeen(path) {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

/** The folder itself or, before it is made, the one that it will be made in. */
export const existing = (folder) => (isSeen(folder) ? folder : existing(dirname(folder)));

/** @returns {string | undefined} why this user can keep nothing in a folder */
function whyNotWritable(folder) {
  try {
    if (!statSync(folder).isDirectory()) return 'it is no folder';
    accessSync(folder, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    if (error.code === 'ENOENT') return 'it is a link that leads nowhere';
    return error.code === 'EROFS' ? 'it is read-only' : 'this user may not write it';
  }
}

/** @throws {Error} where the state folder cannot be written or made */
export function demandStateFolder() {
  const folder = existing(stateDir);
  const why = whyNotWritable(folder);
  if (why !== undefined)
    throw new Error(
      `${folder} cannot be written (${why}): set PORTICO_STATE_DIR to a folder that can, for programs, data and logs.`,
    );
}

/** What a disk was mounted with. @returns {string[]} */
function mountOptions(folder) {
  if (!existsSync('/proc/self/mountinfo')) return [];
  const rows = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .map(([, , , , place = '', options = '']) => ({
      place: place.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8))),
      options: options.split(','),
    }));
  const path = `${realpathSync(folder)}/`;
  const above = rows.filter(
    ({ place }) => place !== '' && path.startsWith(place === '/' ? '/' : `${place}/`),
  );
  return above.reduce((best, row) => (row.place.length >= best.place.length ? row : best), {
    place: '',
    options: /** @type {string[]} */ ([]),
  }).options;
}

/** @throws {Error} where the backends' programs would not run; a link may take them elsewhere than the rest of the state */
function demandExecution() {
  const folder = existing(join(stateDir, 'programs'));
  if (mountOptions(folder).includes('noexec'))
    throw new Error(
      `${folder} is on a disk that runs no programs (mounted with noexec): set PORTICO_STATE_DIR to a folder on another one.`,
    );
}

/** Whether an earlier start has fetched the backends' programs. */
function hasPrograms() {
  const folder = join(stateDir, 'programs');
  return existsSync(folder) && readdirSync(folder).some((name) => !/^node-|\.new$/.test(name));
}

/** @param {boolean} wantsPrograms whether backends will run as processes of this machine */
export function diskSpace(wantsPrograms) {
  const needed =
    (lacksNode() ? spaceMb.node : 0) +
    (hasPackages() ? 0 : spaceMb.packages) +
    (wantsPrograms && !hasPrograms() ? spaceMb.programs : 0) +
    spaceMb.data;
  const { bavail, bsize } = statfsSync(existing(stateDir));
  const free = Math.floor((bavail * bsize) / 1e6);
  return { needed, free, isEnough: free >= needed };
}

/** @throws {Error} where too little of the disk is free for what is still to come */
export function demandSpace(wantsPrograms) {
  const { needed, free, isEnough } = diskSpace(wantsPrograms);
  if (isEnough) return;
  throw new Error(
    `${existing(stateDir)} has ${free} MB free and this start needs ${needed} MB: make room, or set PORTICO_STATE_DIR to a folder on another disk.`,
  );
}

/** Whether Node was made for musl: Alpine and kin, where Debian's programs do not run. */
function isMusl() {
  const head = Buffer.alloc(8_192);
  const fd = openSync(process.execPath, 'r');
  try {
    readSync(fd, head, 0, head.length, 0);
  } finally {
    closeSync(fd);
  }
  return head.includes('/ld-musl');
}

/** @returns {string | undefined} why backends cannot run here without Docker */
export function whyNotNative() {
  const { platform, arch } = process;
  if (platform !== 'linux') return `this is ${platform}`;
  if (arch !== 'x64' && arch !== 'arm64') return `this is ${arch}`;
  return isMusl() ? 'this system has musl instead of glibc' : undefined;
}

/** @throws {Error} where neither way of running backends is open */
export function demandPlatform(engine) {
  const reason = engine === 'native' ? whyNotNative() : undefined;
  if (reason !== undefined)
    throw new Error(
      `Without a Docker engine backends run on Linux with glibc on x64 or arm64, and ${reason}: start Docker, or name backends of your own with --config.`,
    );
}

/** Whether the Node of this process is too old and none was fetched yet. */
const lacksNode = () => !isFit(process.versions.node) && fetchedNode() === undefined;

/** @throws {Error} where backends cannot run as processes of this machine */
export async function demandNative(backends) {
  for (const name of backends) demandFolderName(name, stateDir);
  demandExecution();
  await runnerFor(existing(stateDir));
  if (!hasPrograms()) await demandUnpacking();
}

/** Host and port that npm speaks to: the registry, or the proxy in front of it. */
async function registryPlace() {
  const options = {
    env: { npm_config_logs_max: '0', npm_config_update_notifier: 'false' },
    timeoutMs: 30_000,
  };
  const text = await npm(['config', 'get', 'registry', 'https-proxy', 'proxy'], options);
  const values = Object.fromEntries(
    [...text.matchAll(/^([\w-]+) ?= ?(\S+)$/gm)].map(([, name, value]) => [name, value?.replaceAll('"', '')]),
  );
  const proxy = values['https-proxy'] !== 'null' ? values['https-proxy'] : values.proxy;
  const url = new URL(proxy && proxy !== 'null' ? proxy : values.registry);
  return { host: url.hostname, port: Number(url.port || (url.protocol === 'http:' ? 80 : 443)) };
}

/** @returns {Promise<{place: string, reason?: string}>} why npm's registry is out of reach, if it is */
export async function askRegistry() {
  const { host, port } = await registryPlace();
  const reason = await new Promise((resolve) => {
    const socket = createConnection({ host: host.replace(/[[\]]/g, ''), port });
    const end = (why) => {
      socket.destroy();
      resolve(why);
    };
    socket.setTimeout(answerLimitMs, () => end(`no answer within ${answerLimitMs / 1000} s`));
    socket.once('connect', () => end(undefined));
    socket.once('error', (error) => end(/** @type {NodeJS.ErrnoException} */ (error).code ?? error.message));
  });
  return { place: `${host}:${port}`, reason };
}

/** @throws {Error} where npm's registry is out of reach */
export async function demandRegistry() {
  const { place, reason } = await askRegistry();
  if (reason !== undefined)
    throw new Error(
      `${place}, from which npm fetches packages, cannot be reached (${reason}): fix the network, or name a mirror (npm config set registry) or a proxy (HTTPS_PROXY).`,
    );
}

/** A process that an earlier start of this state folder left there: the next one ends it. */
function isOurs(p, port) {
  const pid = listenerIdOf(port);
  return pid !== undefined && environmentOf(pid).some((line) => line.startsWith(`${tagName}=${p.run}/`));
}

/**
 * The ports that a start needs and cannot have.
 * @param {import('../state/profile.mjs').Profile} p
 * @param {'docker' | 'native'} engine
 * @param {string[]} backends those that will be started
 * @param {number[]} gateway its ports, as far as they are known
 * @returns {Promise<(import('../processes/ports.mjs').Holder & {port: number, owner: string})[]>}
 */
export async function takenPorts(p, engine, backends, gateway) {
  const ofBackends = backends.flatMap((name) =>
    portsOf(p, name, engine).map((port) => ({ port, owner: name })),
  );
  const wanted = [
    ...gateway.map((port) => ({ port, owner: 'the gateway' })),
    ...ofBackends.filter(({ owner }) => readPidFile(join(p.run, `${owner}.pid`)) === undefined),
  ];
  const rows = [];
  for (const { port, owner } of wanted) {
    const twin = owner === 'the gateway' && ofBackends.find((one) => one.port === port);
    const taken = twin ? { holder: twin.owner, isProgram: false } : await holderOf(port);
    if (taken !== undefined && !(taken.isProgram && isOurs(p, port))) rows.push({ port, owner, ...taken });
  }
  return rows;
}

/** @throws {Error} that names the first port, who has it, and the way out */
export async function demandPorts(p, engine, backends, gateway) {
  // Containers of an earlier start hold their ports themselves, and Compose leaves them alone.
  const isFirst = engine === 'native' || !existsSync(join(p.run, 'engine'));
  const [taken] = await takenPorts(p, engine, isFirst ? backends : [], gateway);
  if (taken === undefined) return;
  const remedy =
    taken.owner === 'the gateway'
      ? 'choose another port: PORTICO_HTTP_PORT, or http.port in the configuration'
      : 'set PORTICO_PORT_BASE to a free block of ports (the default is 18070)';
  throw portError(taken, `${remedy}.`);
}

/** What a start will need as far as it can be told before there are packages that read the configuration. */
export function likelyNeeds(p, config) {
  if (config !== undefined) return { backends: [], gateway: [] };
  return {
    backends: backendNames.filter((name) => !process.env[addressOf[name]]),
    gateway: [p.ports.gateway],
  };
}

/** @param {Record<string, string>} backends of a configuration's check */
export const neededBackends = (backends) =>
  Object.keys(backends).filter((name) => backends[name] === 'needed');

/** What all that fetches from npm must ask first. */
export async function demandFetch() {
  demandStateFolder();
  demandCheckout();
  if (lacksNode()) demandExecution();
  demandSpace(false);
  await demandRegistry();
}

/**
 * @param {import('../state/profile.mjs').Profile} p
 * @param {'docker' | 'native'} engine
 * @param {import('./gateway.mjs').Check | undefined} report what the configuration asks for, where that can be read already
 * @param {string} [config]
 */
export async function preflight(p, engine, report, config) {
  demandStateFolder();
  demandCheckout();
  const { backends, gateway } =
    report === undefined
      ? likelyNeeds(p, config)
      : { backends: neededBackends(report.backends), gateway: report.ports };
  demandSecrets(p);
  if (lacksNode()) demandExecution();
  if (backends.length > 0) {
    demandPlatform(engine);
    await (engine === 'native' ? demandNative(backends) : demandEngine(engine));
  }
  await demandPorts(
    p,
    engine,
    backends,
    gateway.filter((port) => port !== 0),
  );
  demandSpace(engine === 'native' && backends.length > 0);
  if (!hasPackages() || lacksNode()) await demandRegistry();
}
