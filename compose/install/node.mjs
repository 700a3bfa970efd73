import { spawn } from 'node:child_process';
import { delimiter, dirname } from 'node:path';

// This file and what imports it statically must be readable to a Node that is too old for everything else.

/** What the launcher itself runs on, to fetch the Node that the gateway is made for. */
const OLDEST = '18.17';

function parts(version) {
  const [major, minor] = version.replace('v', '').split('.').map(Number);
  return { major, minor };
}

/**
 * Whether the gateway can be expected to run on this version of Node: one that `engines` in package.json names, which are those
 * that are tested, or a newer one, since where none can be fetched (macOS) it is the only one.
 */
export function isFit(version) {
  const { major, minor } = parts(version);
  return major >= 24 || (major === 22 && minor >= 19);
}

/** Ends this process with one sentence where nothing of Portico can run. */
export function demandNode() {
  const { major, minor } = parts(process.versions.node);
  const oldest = parts(OLDEST);
  if (major > oldest.major || (major === oldest.major && minor >= oldest.minor)) return;
  console.error(
    `Portico needs Node 22.19 or newer, or ${OLDEST} to fetch one by itself; this is Node ${process.versions.node}.`,
  );
  process.exit(1);
}

const proxyVariables = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY'];

/** Node's own downloads heed the usual variables of a proxy only when they are told to. */
function proxyArguments() {
  const isSet = proxyVariables.some((name) => process.env[name]);
  return isSet && !process.env.NODE_USE_ENV_PROXY ? ['--use-env-proxy'] : [];
}

/** Whether this process would pass by a proxy that the user has named. */
export function needsProxyArguments() {
  const flag = '--use-env-proxy';
  if (proxyArguments().length === 0 || process.execArgv.includes(flag)) return false;
  return process.allowedNodeEnvironmentFlags.has(flag);
}

/** Loopback is asked directly: the gateway's readiness, the brokers' management. */
function withoutProxyForLoopback() {
  const given = process.env.no_proxy || process.env.NO_PROXY;
  const list = [given, '127.0.0.1', 'localhost', '::1'].filter(Boolean).join(',');
  return { no_proxy: list, NO_PROXY: list };
}

/**
 * Goes on with this command in another Node, which comes first on PATH for all that it starts, and ends as that one ends.
 * @param {string} node its program
 * @param {string[]} args a script and its arguments
 * @returns {Promise<never>}
 */
export async function goOnWith(node, args) {
  const { watchParent } = await import('../processes/interruption.mjs');
  const proxy = proxyArguments();
  const child = spawn(node, [...proxy, ...args], {
    stdio: 'inherit',
    env: {
      ...process.env,
      PATH: [dirname(node), process.env.PATH].join(delimiter),
      ...(proxy.length > 0 ? withoutProxyForLoopback() : {}),
    },
  });
  const pass = (signal) => child.kill(signal);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, pass);
  watchParent(() => pass('SIGTERM'));
  const [code, signal] = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (...how) => resolve(how));
  });
  if (signal !== null) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  }
  return process.exit(code === null ? 1 : code);
}
