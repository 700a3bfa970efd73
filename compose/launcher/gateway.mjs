import { createHash } from 'node:crypto';
import { existsSync, openSync, readFileSync, readSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { throwIfInterrupted } from '../processes/interruption.mjs';
import { demandFree } from '../processes/ports.mjs';
import { launch, readPidFile, stopFamily } from '../processes/processes.mjs';
import { runProgram } from '../processes/run-program.mjs';
import { launcherVariables, root, stateDir } from '../state/profile.mjs';
import { gatewaySecrets, writePrivateFile } from '../state/secrets.mjs';
import { cards } from '../state/services.mjs';
import { askGateway } from './ask-gateway.mjs';

/** @typedef {import('../state/profile.mjs').Profile} Profile */
/**
 * What `dist/main.js check` says of a configuration.
 * @typedef {object} Check
 * @property {string} url
 * @property {string} operationsUrl where /readyz is
 * @property {string | null} consoleUrl where the console is
 * @property {number[]} ports all that the gateway listens on
 * @property {string[]} services those that are not switched off
 * @property {{service: string, wants: {key: string, variable: string}[]}[]} unserved those of them whose backends have
 *   no address yet
 * @property {Record<string, string>} urls
 * @property {Record<string, 'needed' | 'given' | 'unused'>} backends
 * @property {string[]} set variables whose key the configuration has a value for already
 * @property {boolean} keepsTokens whether a backend can keep tokens made at run time
 */

const main = join(root, 'dist/main.js');
/** Short calls of the gateway's program take 2 s of CPU, on a starved machine ten times that. */
const programLimitMs = 120_000;
/** Backends that do not answer the gateway after this time are named. */
const readyLimitMs = 30_000;
/** A gateway that lives and does not listen: on a starved machine it may take half a minute. */
const answerLimitMs = 120_000;
/** The gateway drains for up to 15 s by default and then closes its clients. */
const stopLimitMs = 25_000;

export const pidFileOf = (p) => join(p.run, 'gateway.pid');
const noteOf = (p) => join(p.run, 'gateway.json');
const logOf = (p) => join(p.logs, 'gateway.log');

const configArgs = (config) => (config === undefined ? [] : ['--config', config]);

/** The services that cannot work without a backend. */
const dependentsOf = (backend) =>
  Object.keys(cards).filter((service) => cards[service]?.needs.includes(backend));

const missingVariable = (service) => `PORTICO_${service.toUpperCase()}_MISSING`;

/** The longest reason that the gateway takes. */
const reasonLimit = 8_000;

/** Services whose backend could not be started, with the reason, as the gateway's variables. */
function missingVariables(failed) {
  const env = {};
  for (const [backend, reason] of Object.entries(failed)) {
    const line = `${backend}: ${reason.replace(/\s+/g, ' ')}`;
    for (const service of dependentsOf(backend)) {
      const name = missingVariable(service);
      env[name] = [env[name], line].filter(Boolean).join('; ').slice(0, reasonLimit);
    }
  }
  return env;
}

/**
 * The services that have to wait for a backend that could not be started.
 * @param {Check} report
 * @param {Record<string, string | undefined>} env the gateway's
 */
export const missingServices = (report, env) =>
  report.services.filter((service) => env[missingVariable(service)]);

/**
 * What a start knows of backends that could not be started, in place of what an earlier one knew.
 * @param {Record<string, string>} env the running gateway's
 * @param {Record<string, string>} wanted what it would get now
 */
export function withMissing(env, wanted) {
  const isMissing = (name) => /^PORTICO_[A-Z]+_MISSING$/.test(name);
  const others = Object.entries(env).filter(([name]) => !isMissing(name));
  const now = Object.entries(wanted).filter(([name]) => isMissing(name));
  return Object.fromEntries([...others, ...now]);
}

/** The user's, and where Node keeps what it has compiled: a start asks the gateway's program three times. */
function inheritedEnvironment() {
  const inherited = Object.entries(process.env).filter(([name]) => !launcherVariables.includes(name));
  return { NODE_COMPILE_CACHE: join(stateDir, 'run/compiled'), ...Object.fromEntries(inherited) };
}

/**
 * What the gateway's program says of a configuration.
 * @throws {Error} with `exitCode` 78 and all reasons when the configuration is bad
 */
async function ask(command, config, env) {
  const options = { env, timeoutMs: programLimitMs };
  try {
    return JSON.parse(await runProgram(process.execPath, [main, command, ...configArgs(config)], options));
  } catch (error) {
    if (error.exitCode === 78) throw Object.assign(new Error(error.output), { exitCode: 78 });
    throw error;
  }
}

/**
 * Asks the gateway's program what a configuration needs.
 * @param {string} [config] a file
 * @returns {Promise<Check>}
 * @throws {Error} with `exitCode` 78 and all reasons when the configuration is bad
 */
export const check = (config) => ask('check', config, inheritedEnvironment());

/**
 * The gateway's environment: the user's variables win over ours, and what the file sets is left alone. It has the
 * addresses of backends that could not be started, too: its services join when they come.
 * @param {Check} report
 * @param {{secrets: Record<string, string>, urls: Record<string, string>, failed: Record<string, string>}} made
 *   failed: the reason for each backend that cannot be had
 */
export function gatewayEnvironment(report, { secrets, urls, failed }) {
  const inherited = inheritedEnvironment();
  const env = { ...inherited };
  const offer = (name, value) => {
    if (!inherited[name] && !report.set.includes(name)) env[name] = value;
  };
  // an administrator's tokens have to be kept somewhere
  const wanted = gatewaySecrets.filter((name) => name !== 'PORTICO_ADMIN_TOKEN' || report.keepsTokens);
  for (const name of wanted) offer(name, secrets[name]);
  for (const [name, value] of Object.entries(urls)) offer(name, value);
  for (const service of report.services) {
    const { needs = [], variables = {} } = cards[service] ?? {};
    const ours = needs.every((backend) => backend === 'pgvector' || report.backends[backend] === 'needed');
    if (ours) for (const [name, value] of Object.entries(variables)) offer(name, value);
  }
  return { ...env, ...missingVariables(failed) };
}

/**
 * What the launcher cannot know by itself: tokens that are derived from a backend's password or that a configuration has,
 * a metrics token among them, so that the card and connection.env can show them. No backend has to run for it.
 * @param {Record<string, string | undefined>} env the gateway's
 * @param {string} [config] a file
 * @returns {Promise<Record<string, string>>} variables
 */
export async function derivedTokens(env, config) {
  const { metricsToken, adminToken, ...services } = await ask('tokens', config, env);
  const derived = Object.entries(services).flatMap(([service, instances]) => {
    const [tokens = {}] = Object.values(instances);
    return (cards[service]?.credentials ?? [])
      .filter(({ made }) => made.principal !== undefined && tokens[made.principal])
      .map(({ variable, made }) => [variable, tokens[made.principal ?? '']]);
  });
  return {
    ...Object.fromEntries(derived),
    ...(metricsToken ? { PORTICO_METRICS_TOKEN: metricsToken } : {}),
    ...(adminToken ? { PORTICO_ADMIN_TOKEN: adminToken } : {}),
  };
}

/**
 * What a gateway was started with: a second start, from a shell with other variables, must speak of that one.
 * @typedef {{report: Check, env: Record<string, string>, config?: string, configHash?: string}} Note
 * @returns {Note | undefined} of the running gateway, if there is one
 */
export function runningGateway(p) {
  if (!readPidFile(pidFileOf(p)) || !existsSync(noteOf(p))) return undefined;
  try {
    return JSON.parse(readFileSync(noteOf(p), 'utf8'));
  } catch (error) {
    // of a gateway whose note a disk has lost nothing is known: it is ended like what is left of one, and started again
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** What a later start knows of backends that are missing; `doctor` tells it. */
export function noteAgain(p, running, env) {
  writePrivateFile(noteOf(p), JSON.stringify({ ...running, env }));
}

const configFileOf = (config) => config ?? join(root, 'config/portico.yaml');

/** Of the configuration's file as it is now. @returns {string | undefined} without one */
function configHash(config) {
  const file = configFileOf(config);
  return existsSync(file) ? createHash('sha256').update(readFileSync(file)).digest('hex') : undefined;
}

/**
 * What this start would have set otherwise than the running gateway has it: variables that have another value now, and the
 * configuration's file when it has changed. What is not set now says nothing, or the gateway's own names would all be listed.
 * @param {Note} running
 * @param {Record<string, string | undefined>} [env] the user's
 * @returns {string[]} names, without values: some are secrets
 */
export function ignoredSettings(running, env = inheritedEnvironment()) {
  const names = Object.keys(env).filter(
    (name) => name.startsWith('PORTICO_') && env[name] !== undefined && env[name] !== running.env[name],
  );
  const isChanged = running.configHash !== undefined && running.configHash !== configHash(running.config);
  return [...names.sort(), ...(isChanged ? [configFileOf(running.config)] : [])];
}

/** Ends what is left of an earlier gateway. @throws {Error} when another program has the port */
export async function demandGatewayPort(p, report) {
  const { port } = new URL(report.url);
  if (port === '0')
    throw new Error('http.port 0 takes any free port, which npm start cannot find again: choose one');
  await stopFamily(pidFileOf(p), { graceMs: 2_000 });
  for (const one of report.ports)
    await demandFree(
      one,
      'the gateway',
      'choose another port: PORTICO_HTTP_PORT, or http.port in the configuration',
    );
}

/** Starts the gateway; it listens when `waitReady` says so. */
export async function startGateway(p, report, env, config) {
  await demandGatewayPort(p, report);
  const own = Object.fromEntries(Object.entries(env).filter(([name]) => name.startsWith('PORTICO_')));
  writePrivateFile(noteOf(p), JSON.stringify({ report, env: own, config, configHash: configHash(config) }));
  const args = ['--enable-source-maps', main, ...configArgs(config)];
  const from = existsSync(logOf(p)) ? statSync(logOf(p)).size : 0;
  await launch({ file: process.execPath, args, env, cwd: root, log: logOf(p), pidFile: pidFileOf(p) });
  return from;
}

/** What the gateway wrote since it was started: the reason when it ends at once. */
function wordsSince(p, from) {
  const fd = openSync(logOf(p), 'r');
  const buffer = Buffer.alloc(4_000);
  // a log that had grown too long was set aside at this start
  const length = readSync(fd, buffer, 0, buffer.length, statSync(logOf(p)).size < from ? 0 : from);
  return buffer.subarray(0, length).toString().trim();
}

/**
 * @typedef {{status: 'up' | 'down', reason?: string}} State
 * @returns {Promise<Record<string, State & {instances?: Record<string, State>}>>} what /readyz tells of the services
 */
async function readiness(url, token) {
  const answer = await askGateway(`${url}/readyz`, { token, timeoutMs: 3_000 });
  return /** @type {any} */ (await answer.json()).services;
}

/** The services' instances that are down although their backend was started. */
function downInstances(services, missing) {
  return Object.entries(services)
    .filter(([service, { status }]) => status !== 'up' && !missing.includes(service))
    .flatMap(([service, { instances }]) =>
      instances === undefined
        ? [`${service}: down`]
        : Object.entries(instances)
            .filter(([, { status }]) => status !== 'up')
            .map(([name, { reason }]) => `${service}/${name}: ${reason ?? 'down'}`),
    );
}

/**
 * Waits until every service is up whose backend is not missing.
 * @param {Profile} p
 * @param {Check} report
 * @param {Record<string, string | undefined>} env the gateway's
 * @param {string[]} missing services
 * @param {number} [from] where in the log its words begin
 * @returns {Promise<string[]>} what is still down when the time is over
 * @throws {Error} when the gateway ends, or never answers
 */
export async function waitReady(p, report, env, missing, from = 0) {
  const begun = Date.now();
  let down = ['no answer'];
  for (;;) {
    throwIfInterrupted();
    if (!readPidFile(pidFileOf(p))) throw new Error(`the gateway ended at start: ${wordsSince(p, from)}`);
    try {
      const services = await readiness(report.operationsUrl, env.PORTICO_METRICS_TOKEN);
      down = downInstances(services, missing);
      if (down.length === 0) return [];
    } catch {
      // It does not listen yet.
    }
    if (Date.now() - begun > readyLimitMs && down[0] !== 'no answer') return down;
    if (Date.now() - begun > answerLimitMs)
      throw new Error(`the gateway does not answer on ${report.url}; its log is ${logOf(p)}`);
    await sleep(100);
  }
}

/** Ends the gateway; requests in flight get their time. */
export async function stopGateway(p) {
  const outcome = await stopFamily(pidFileOf(p), { graceMs: stopLimitMs });
  rmSync(noteOf(p), { force: true });
  return outcome;
}
