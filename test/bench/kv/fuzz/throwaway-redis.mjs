import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { testPrograms } from '../../../../compose/native/test-programs.mjs';
import { profile } from '../../../../compose/state/profile.mjs';
import { endWithThisProcess, inherited } from '../../server-process.mjs';

const START_MS = 60_000;

/**
 * A Redis for nobody else, since everything is tried on it: the one that `npm start` runs beside the system.
 * @returns {Promise<{ url: string, redis: Redis, stop: () => Promise<void> }>}
 */
export async function startThrowawayRedis() {
  const folder = await mkdtemp(join(tmpdir(), 'portico-fuzz-'));
  const port = await freePort();
  const program = process.env.PORTICO_TEST_REDIS_NEWEST || (await newestRedis());
  const options = ['--save', '', '--appendonly', 'no', '--dir', folder, '--logfile', join(folder, 'log')];
  const child = spawn(program, ['--port', String(port), '--bind', '127.0.0.1', ...options], {
    env: { PATH: process.env.PATH, ...inherited() },
    stdio: 'ignore',
  });
  endWithThisProcess(child);
  const exited = once(child, 'exit');
  const redis = new Redis(port, '127.0.0.1', { retryStrategy: () => 100, maxRetriesPerRequest: null });
  redis.on('error', () => undefined);
  const stop = async () => {
    redis.disconnect();
    child.kill('SIGTERM');
    const cap = setTimeout(() => child.kill('SIGKILL'), 5_000);
    await exited;
    clearTimeout(cap);
    await rm(folder, { recursive: true, force: true });
  };
  const ready = await Promise.race([
    redis.ping().catch(() => false),
    exited.then(() => false),
    sleep(START_MS, false, { ref: false }),
  ]);
  if (ready === 'PONG') return { url: `redis://127.0.0.1:${port}`, redis, stop };
  await stop();
  throw new Error('the throw-away Redis does not answer');
}

async function newestRedis() {
  const programs = await testPrograms(profile('test'), (name, line) => console.error(`${name}: ${line}`));
  return programs.PORTICO_TEST_REDIS_NEWEST;
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
