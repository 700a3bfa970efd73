import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readPidFile } from '../processes/processes.mjs';

/**
 * Where one profile keeps its state, and the loopback ports that it owns.
 * @typedef {object} Ports
 * @property {number} gateway
 * @property {number} redis
 * @property {number} postgres
 * @property {number} kafka
 * @property {number} kafkaController
 * @property {number} rabbitmq
 * @property {number} rabbitmqManagement
 * @property {number} rabbitmqDistribution
 * @property {number} rabbitmqEpmd
 *
 * @typedef {object} Profile
 * @property {string} name `dev` (npm start), `test` (npm test), or `test-` and a name: one of its sets of backends
 * @property {string} dir the profile's own folder; dev's is `.portico` itself
 * @property {string} data
 * @property {string} logs
 * @property {string} run pid files, generated configuration
 * @property {string} programs shared by all profiles of this checkout
 * @property {Ports} ports
 */

export const root = resolve(fileURLToPath(new URL('../..', import.meta.url)));

/** Whether this is the published package, which is compiled and has its packages beside it, and no checkout. */
export const isInstalled = !existsSync(join(root, 'src'));

/** npx says so; who has installed the package for all has `portico` on PATH. */
const installedCommand = process.env.npm_command === 'exec' ? 'npx portico' : 'portico';

/** How the user calls one of the launcher's commands. */
export const commandLine = (name) => `${isInstalled ? installedCommand : 'npm'} ${name}`;

/** A package's own folder is npm's, so what it keeps lies where it is used. */
export const stateDir = process.env.PORTICO_STATE_DIR
  ? resolve(process.env.PORTICO_STATE_DIR)
  : join(isInstalled ? process.cwd() : root, '.portico');

/** The tag of what fetches Node. */
export const installTag = join(stateDir, 'install.pid');

/**
 * The lock and the tag of npm and the compiler, whose work lies in the checkout: two launchers with state folders of their
 * own share it.
 */
export const checkoutLock = join(root, '.install.lock');
export const checkoutTag = join(root, '.install.pid');

/** Variables of the launcher, which are not the gateway's: it would warn of them. */
export const launcherVariables = [
  ...['PORTICO_STATE_DIR', 'PORTICO_PORT_BASE', 'PORTICO_BACKENDS', 'PORTICO_REDIS_JSON'],
  ...['PORTICO_REDIS_FSYNC'],
  ...['PORTICO_DEBIAN_MIRROR', 'PORTICO_MAVEN_MIRROR', 'PORTICO_PYPI_INDEX'],
];

/** Clear of the programs' usual ports (5432, 5672, 6379, 9092) and below Linux' ephemeral range (32768 up). */
const portBases = { dev: 18070, test: 19070 };
export const profileNames = Object.keys(portBases);

/** Whether it is a profile of the tests, which have several sets of backends beside each other. */
const isTest = (name) => /^test(-[a-z]+)?$/.test(name);

/** The ports of a block: base + 1 is Redis, + 2 Postgres, and so on to base + 8. */
function portsFrom(base, gateway) {
  return {
    gateway,
    redis: base + 1,
    postgres: base + 2,
    kafka: base + 3,
    kafkaController: base + 4,
    rabbitmq: base + 5,
    rabbitmqManagement: base + 6,
    rabbitmqDistribution: base + 7,
    rabbitmqEpmd: base + 8,
  };
}

/** Whether any process of a profile is up. */
export function anythingRuns(run) {
  const files = existsSync(run) ? readdirSync(run).filter((file) => file.endsWith('.pid')) : [];
  return files.some((file) => readPidFile(join(run, file)) !== undefined);
}

const portNote = (run) => join(run, 'port-base');

/** @returns {number | undefined} undefined, too, where a full disk left the note empty */
function notedPortBase(run) {
  const noted = existsSync(portNote(run)) ? Number(readFileSync(portNote(run), 'utf8')) : 0;
  return noted > 0 ? noted : undefined;
}

/** @returns {number | undefined} undefined where the variable is not set @throws {Error} where it is no such number */
function numberIn(variable, least, most) {
  const text = process.env[variable];
  if (text === undefined || text === '') return undefined;
  const number = Number(text);
  if (Number.isInteger(number) && number >= least && number <= most) return number;
  throw new Error(`${variable} must be a whole number from ${least} to ${most}, not '${text}'`);
}

/**
 * The block of ports: that of what runs, else the environment's, else what the last start used, else the default.
 * A stop, or a second start from another shell, must find the first one's backends.
 */
function portBase(name, run) {
  const noted = notedPortBase(run);
  if (noted !== undefined && anythingRuns(run)) return noted;
  const base = numberIn('PORTICO_PORT_BASE', 1024, 64_000);
  if (base === undefined) return noted ?? portBases[isTest(name) ? 'test' : 'dev'];
  return name === 'dev' ? base : base + 1000;
}

/** The ports that a backend has, as containers or as processes, which have some for use among themselves. */
export function portsOf(p, backend, engine) {
  const outer = [backend, `${backend}Management`];
  return Object.entries(p.ports)
    .filter(([name]) => (engine === 'docker' ? outer.includes(name) : name.startsWith(backend)))
    .map(([, port]) => port);
}

/** The same profile on another block of ports. */
export function withPortBase(p, base) {
  return { ...p, ports: portsFrom(base, p.ports.gateway) };
}

/** Writes down which ports are in use from now on. */
export function notePorts(p) {
  writeFileSync(portNote(p.run), String(p.ports.redis - 1));
}

/** Forgets them; for when nothing runs any more. */
export function forgetPorts(p) {
  rmSync(portNote(p.run), { force: true });
}

/**
 * @param {string} name `dev`, `test` or `test-...`
 * @returns {Profile}
 * @throws {Error} when the name is unknown or a variable is no port
 */
export function profile(name) {
  if (name !== 'dev' && !isTest(name)) throw new Error(`unknown profile '${name}': use dev or test`);
  const dir = name === 'dev' ? stateDir : join(stateDir, name);
  const run = join(dir, 'run');
  const gateway = numberIn('PORTICO_HTTP_PORT', 0, 65_535) ?? 8070;
  return {
    name,
    dir,
    run,
    data: join(dir, 'data'),
    logs: join(dir, 'logs'),
    programs: join(stateDir, 'programs'),
    ports: portsFrom(portBase(name, run), gateway),
  };
}

/** Makes the profile's folders. The state folder itself stays closed to other users: it holds secrets. */
export function makeFolders(p) {
  mkdirSync(stateDir, { recursive: true, mode: 0o755 });
  for (const dir of [p.data, p.logs, p.run, p.programs]) mkdirSync(dir, { recursive: true, mode: 0o755 });
}
