import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { startServer } from '../server-process.mjs';

const READY_MS = 10_000;

/** @typedef {Awaited<ReturnType<typeof startServer>>} Server */

/**
 * Runs `work` with the reference server and a gateway of this build on the Redis of this run, then ends both and removes
 * every key that begins with `prefix`.
 * @template T
 * @param {(bench: { redis: Redis, prefix: string, token: string, reference: Server, gateway: Server }) => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withKvServers(work) {
  const url = process.env.PORTICO_REDIS_URL;
  const prefix = `bench:${randomBytes(6).toString('hex')}:`;
  const token = randomBytes(24).toString('base64url');
  const redis = new Redis(url);
  const servers = [];
  try {
    const reference = await startReference(url);
    servers.push(reference);
    const gateway = await startGateway({ PORTICO_REDIS_URL: url, PORTICO_KV_TOKEN: token });
    servers.push(gateway);
    return await work({ redis, prefix, token, reference, gateway });
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    await removeKeys(redis, prefix).catch(() => undefined);
    redis.disconnect();
  }
}

function startReference(url) {
  return startServer({
    args: ['test/bench/kv/reference.mjs'],
    env: { PORTICO_REDIS_URL: url },
    portOf: (line) => Number(/^listening on (\d+)$/.exec(line)?.[1]) || undefined,
  });
}

/**
 * The built gateway with the kv service alone, on a free port.
 * @param {Record<string, string>} env
 * @param {{ document?: string, nodeArguments?: string[], onLine?: (line: string) => void }} options configuration as YAML;
 *   `onLine` gets what it logs
 */
export async function startGateway(
  env,
  { document = 'http: { port: 0 }\n', nodeArguments = [], onLine } = {},
) {
  const folder = await mkdtemp(join(tmpdir(), 'portico-bench-'));
  try {
    const file = join(folder, 'portico.yaml');
    await writeFile(file, document, { mode: 0o600 });
    const off = Object.fromEntries(
      ['VECTOR', 'BROKER', 'QUEUE'].map((name) => [`PORTICO_${name}_ENABLED`, 'false']),
    );
    const gateway = await startServer({
      args: [...nodeArguments, 'dist/main.js', '--config', file],
      env: { ...off, ...env },
      onLine,
      portOf: (line) => Number(/"port":(\d+).*"msg":"listening"/.exec(line)?.[1]) || undefined,
    });
    await untilReady(gateway);
    return gateway;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** It listens before it has its backends. */
async function untilReady(gateway) {
  const end = performance.now() + READY_MS;
  while (performance.now() < end) {
    const { ok } = await fetch(`http://127.0.0.1:${gateway.port}/readyz`);
    if (ok) return;
    await sleep(50);
  }
  await gateway.stop();
  throw new Error(`the gateway is not ready within ${READY_MS} ms`);
}

async function removeKeys(redis, prefix) {
  for await (const keys of redis.scanStream({ match: `${prefix}*`, count: 1_000 }))
    if (keys.length > 0) await redis.unlink(...keys);
}
