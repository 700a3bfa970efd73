import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { endWithThisProcess, inherited } from '../server-process.mjs';

const START_MS = 60_000;

/**
 * A Redis for nobody else, since everything is tried on it: the newest program of the test run, else the system's, else
 * a container of compose.yaml's image.
 * @returns {Promise<{ url: string, redis: Redis, stop: () => Promise<void> }>}
 */
export async function startThrowawayRedis() {
  const folder = await mkdtemp(join(tmpdir(), 'portico-fuzz-'));
  const port = await freePort();
  const program = process.env.PORTICO_TEST_REDIS_NEWEST || 'redis-server';
  const options = ['--save', '', '--appendonly', 'no', '--dir', folder, '--logfile', join(folder, 'log')];
  const address = ['--port', String(port), '--bind', '127.0.0.1'];
  const child =
    (await started(program, [...address, ...options])) ??
    (await started('docker', [
      'run',
      '--rm',
      '-i',
      '-p',
      `127.0.0.1:${port}:6379`,
      await image(),
      'redis-server',
      '--save',
      '',
    ]));
  if (child === undefined) throw new Error('neither redis-server nor docker can be started');
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

/** The process, or nothing when there is no such program. */
async function started(program, args) {
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH, ...inherited() },
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  const error = await Promise.race([once(child, 'spawn').then(() => undefined), once(child, 'error')]).catch(
    (thrown) => thrown,
  );
  return error === undefined ? child : undefined;
}

async function image() {
  const text = await readFile(new URL('../../../compose/compose.yaml', import.meta.url), 'utf8');
  return /^ +image: (redis:\S+)$/m.exec(text)[1];
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
