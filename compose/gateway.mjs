import { existsSync, openSync, readFileSync, readSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { throwIfInterrupted } from './interruption.mjs';
import { demandFree } from './ports.mjs';
import { launch, readPidFile, stopFamily } from './processes.mjs';
import { root } from './profile.mjs';
import { runProgram } from './run-program.mjs';
import { gatewaySecrets, writePrivateFile } from './secrets.mjs';

/** @typedef {import('./profile.mjs').Profile} Profile */
/**
 * What `dist/main.js check` says of a configuration.
 * @typedef {object} Check
 * @property {string} url
 * @property {string[]} services
 * @property {Record<string, string>} urls
 * @property {Record<string, 'needed' | 'given' | 'unused'>} backends
 * @property {string[]} set variables whose key the configuration has a value for already
 */

const main = join(root, 'dist/main.js');
const readyLimitMs = 30_000;
/** The gateway drains for up to 15 s by default and then closes its clients. */
const stopLimitMs = 25_000;

export const pidFileOf = (p) => join(p.run, 'gateway.pid');
const noteOf = (p) => join(p.run, 'gateway.json');
const logOf = (p) => join(p.logs, 'gateway.log');

const configArgs = (config) => (config === undefined ? [] : ['--config', config]);

/** Which services cannot work without a backend. */
const dependents = {
  redis: ['KV'],
  postgres: ['VECTOR', 'QUEUE'],
  kafka: ['BROKER'],
  rabbitmq: ['QUEUE'],
};

/** The launcher's own variables are not the gateway's, which would warn of them. */
function inheritedEnvironment() {
  const own = ['PORTICO_STATE_DIR', 'PORTICO_PORT_BASE', 'PORTICO_BACKENDS'];
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !own.includes(name)));
}

/**
 * Asks the gateway's program what a configuration needs.
 * @param {string} [config] a file
 * @returns {Promise<Check>}
 * @throws {Error} with `exitCode` 78 and all reasons when the configuration is bad
 */
export async function check(config) {
  const env = inheritedEnvironment();
  try {
    return JSON.parse(
      await runProgram(process.execPath, [main, 'check', ...configArgs(config)], { env, timeoutMs: 20_000 }),
    );
  } catch (error) {
    if (error.exitCode === 78) throw Object.assign(new Error(error.output), { exitCode: 78 });
    throw error;
  }
}

/**
 * The gateway's environment: the user's variables win over ours, and what the file sets is left alone.
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
  for (const name of gatewaySecrets) offer(name, secrets[name]);
  for (const [name, value] of Object.entries(urls)) offer(name, value);
  // a first topic, so that the README's lines work: Kafka makes none by itself
  if (urls.PORTICO_KAFKA_BROKERS) offer('PORTICO_BROKER_TOPICS', 'greetings:3');
  for (const [backend, reason] of Object.entries(failed)) {
    const line = reason.replace(/\s+/g, ' ').slice(0, 480);
    for (const service of dependents[backend]) env[`PORTICO_${service}_MISSING`] ??= line;
  }
  return env;
}

/**
 * Adds the key-value tokens that are derived from Redis' password, so that the card and connection.env can show them.
 * They are the same while there is no Redis.
 * @param {Check} report
 * @param {Record<string, string | undefined>} env the gateway's
 * @param {Record<string, string>} secrets
 * @param {string} [config] a file
 */
export async function withDerivedTokens(report, env, secrets, config) {
  const own = `redis://default:${secrets.PORTICO_REDIS_PASSWORD}@127.0.0.1`;
  const isOwn = report.backends.redis === 'needed' && !env.PORTICO_REDIS_URL;
  const output = await runProgram(process.execPath, [main, 'tokens', ...configArgs(config)], {
    env: { ...env, ...(isOwn ? { PORTICO_REDIS_URL: own } : {}) },
    timeoutMs: 20_000,
  });
  const [tokens = {}] = Object.values(JSON.parse(output).kv ?? {});
  return {
    ...env,
    ...(tokens.standard ? { PORTICO_KV_TOKEN: tokens.standard } : {}),
    ...(tokens['read-only'] ? { PORTICO_KV_READONLY_TOKEN: tokens['read-only'] } : {}),
  };
}

/**
 * What a gateway was started with: a second start, from a shell with other variables, must speak of that one.
 * @typedef {{report: Check, env: Record<string, string>, config?: string}} Note
 * @returns {Note | undefined} of the running gateway, if there is one
 */
export function runningGateway(p) {
  if (!readPidFile(pidFileOf(p)) || !existsSync(noteOf(p))) return undefined;
  return JSON.parse(readFileSync(noteOf(p), 'utf8'));
}

/** Ends what is left of an earlier gateway. @throws {Error} when another program has the port */
export async function demandGatewayPort(p, report) {
  const { port } = new URL(report.url);
  if (port === '0')
    throw new Error('http.port 0 takes any free port, which npm start cannot find again: choose one');
  await stopFamily(pidFileOf(p), { graceMs: 2_000 });
  await demandFree(
    Number(port || 80),
    'the gateway',
    'choose another port: PORTICO_HTTP_PORT, or http.port in the configuration',
  );
}

/** Starts the gateway; it listens when `waitReady` says so. */
export async function startGateway(p, report, env, config) {
  await demandGatewayPort(p, report);
  const own = Object.fromEntries(Object.entries(env).filter(([name]) => name.startsWith('PORTICO_')));
  writePrivateFile(noteOf(p), JSON.stringify({ report, env: own, config }));
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

/** @returns {Promise<{services: Record<string, Record<string, {up: boolean, reason?: string}>>}>} the body of /readyz */
async function readiness(url) {
  const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(3_000) });
  // On a port of its own (http.operationsPort) readiness is not ours to ask: that it listens must do.
  const body = /** @type {any} */ (await answer.json());
  return body.services === undefined ? { services: {} } : body;
}

/** The services' instances that are down although their backend was started. */
function downInstances(services, missing) {
  return Object.entries(services).flatMap(([service, instances]) =>
    missing.includes(service)
      ? []
      : Object.entries(instances)
          .filter(([, state]) => !state.up)
          .map(([name, state]) => `${service}/${name}: ${state.reason ?? 'down'}`),
  );
}

/**
 * Waits until every service is up whose backend is not missing.
 * @param {Profile} p
 * @param {string} url
 * @param {string[]} missing services
 * @param {number} [from] where in the log its words begin
 * @returns {Promise<string[]>} what is still down when the time is over
 * @throws {Error} when the gateway ends, or never answers
 */
export async function waitReady(p, url, missing, from = 0) {
  const deadline = Date.now() + readyLimitMs;
  let down = ['no answer'];
  for (;;) {
    throwIfInterrupted();
    if (!readPidFile(pidFileOf(p))) throw new Error(`the gateway ended at start: ${wordsSince(p, from)}`);
    try {
      down = downInstances((await readiness(url)).services, missing);
      if (down.length === 0) return [];
    } catch {
      // It does not listen yet.
    }
    if (Date.now() > deadline && down[0] !== 'no answer') return down;
    if (Date.now() > deadline)
      throw new Error(`the gateway does not answer on ${url}; its log is ${logOf(p)}`);
    await sleep(100);
  }
}

/** Ends the gateway; requests in flight get their time. */
export async function stopGateway(p) {
  const outcome = await stopFamily(pidFileOf(p), { graceMs: stopLimitMs });
  rmSync(noteOf(p), { force: true });
  return outcome;
}
