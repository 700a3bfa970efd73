import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';
import { kvRequest } from '../../support/kv/kv.js';
import type { RedisOptions } from '../../support/kv/redis-configuration.js';
import { startReplica } from '../../support/kv/redis-replica.js';
import { type RedisServer, startRedis } from '../../support/kv/redis-server.js';
import { OPERATOR_VARIABLES, operatorPage } from '../../support/operator.js';
import { stopAfterEach } from '../../support/stop-after-each.js';

const stopLater = stopAfterEach();
const redis = async (options: RedisOptions = {}) => stopLater(await startRedis(options));
const replicaOf = async (server: RedisServer) => stopLater(await startReplica(server));

async function gatewayFor({ url }: RedisServer): Promise<string> {
  const gateway = stopLater(
    await startGateway({ kv: { databases: [{ url }] } }, { ...OPERATOR_VARIABLES, PORTICO_REDIS_URL: '' }),
  );
  await eventually(async () => expect((await kvRequest(gateway.url, ['PING'])).status).toBe(200));
  return gateway.url;
}

/** A 503 that invites to come again. */
async function expectPassing(url: string, command: readonly unknown[], error: RegExp): Promise<void> {
  const { status, body, headers } = await kvRequest(url, command);
  expect({ status, body, retry: headers.get('retry-after') }).toEqual({
    status: 503,
    body: { error: expect.stringMatching(error) },
    retry: '1',
  });
}

async function expectRefused(url: string, command: readonly unknown[], error: RegExp): Promise<void> {
  const { status, body, headers } = await kvRequest(url, command);
  expect({ status, body, retry: headers.get('retry-after') }).toEqual({
    status: 400,
    body: { error: expect.stringMatching(error) },
    retry: null,
  });
}

const notReady = (url: string, reason: string) =>
  eventually(async () => {
    const { status, text } = await operatorPage(url, '/readyz');
    expect([status, text]).toEqual([503, expect.stringContaining(reason)]);
  });

it('reads from a replica, whose refusal of a write is the answer', async () => {
  const primary = await redis();
  await primary.command('SET', 'k', 'v');
  const url = await gatewayFor(await replicaOf(primary));
  expect((await kvRequest(url, ['GET', 'k'])).body).toEqual({ result: 'v' });
  await expectRefused(url, ['SET', 'k', 'w'], /^READONLY You can't write against a read only replica/);
  const rows = [
    ['GET', 'k'],
    ['SET', 'k', 'w'],
  ];
  const { status, body } = await kvRequest(url, rows, { path: '/kv/pipeline' });
  expect({ status, body }).toEqual({
    status: 200,
    body: [{ result: 'v' }, { error: expect.stringMatching(/^READONLY /) }],
  });
  const multi = await kvRequest(url, rows, { path: '/kv/multi-exec' });
  expect({ status: multi.status, body: multi.body }).toEqual({
    status: 400,
    body: { error: expect.stringMatching(/^READONLY /) },
  });
});

it('asks to come again when a replica has lost its primary and may not answer', async () => {
  const primary = await redis();
  const replica = await replicaOf(primary);
  await replica.command('CONFIG', 'SET', 'replica-serve-stale-data', 'no');
  const url = await gatewayFor(replica);
  await primary.kill();
  await eventually(() => expectPassing(url, ['GET', 'k'], /^MASTERDOWN /));
  await notReady(url, 'MASTERDOWN');
  await primary.start();
  await eventually(async () => expect((await kvRequest(url, ['GET', 'k'])).status).toBe(200));
});

it('says that the memory is full, in the words of Redis', async () => {
  const server = await redis();
  const url = await gatewayFor(server);
  await server.command('CONFIG', 'SET', 'maxmemory', '1');
  await expectRefused(url, ['SET', 'k', 'v'], /^OOM command not allowed when used memory > 'maxmemory'/);
  expect((await kvRequest(url, ['GET', 'k'])).body).toEqual({ result: null });
  await server.command('CONFIG', 'SET', 'maxmemory', '0');
  expect((await kvRequest(url, ['SET', 'k', 'v'])).status).toBe(200);
});

it('asks to come again while Redis cannot save, or has too few replicas', async () => {
  const server = await redis({ config: ['save 3600 1'] });
  const url = await gatewayFor(server);
  // a file cannot take the place of a folder
  await mkdir(join(server.folder, 'dump.rdb'));
  await server.command('BGSAVE');
  await eventually(() => expectPassing(url, ['SET', 'k', 'v'], /^MISCONF /));
  expect((await kvRequest(url, ['GET', 'k'])).status).toBe(200);
  await server.command('CONFIG', 'SET', 'save', '');
  await server.command('CONFIG', 'SET', 'min-replicas-to-write', '1');
  await expectPassing(url, ['SET', 'k', 'v'], /^NOREPLICAS /);
  await server.command('CONFIG', 'SET', 'min-replicas-to-write', '0');
  expect((await kvRequest(url, ['SET', 'k', 'v'])).status).toBe(200);
});

it('waits for a Redis that reads its data, and goes on when it has', async () => {
  // 2 ms a key; meanwhile it answers every so many bytes only
  const config = ['key-load-delay 2000', 'loading-process-events-interval-bytes 1024'];
  const server = await redis({ password: 'of-the-server', config });
  const pairs = Array.from({ length: 1_000 }, (_, i) => [`key:${i}`, String(i)]);
  await server.command('MSET', ...pairs.flat());
  await server.command('SAVE');
  const url = await gatewayFor(server);
  await server.kill();
  await eventually(() => expectPassing(url, ['GET', 'key:999'], /nothing was executed/));
  const started = server.start();
  await eventually(() => expect(server.command('GET', 'key:999')).rejects.toThrow(/^LOADING /));
  await notReady(url, 'LOADING');
  await expectPassing(url, ['GET', 'key:999'], /nothing was executed/);
  await started;
  await eventually(async () =>
    expect((await kvRequest(url, ['GET', 'key:999'])).body).toEqual({ result: '999' }),
  );
});

it('stops when its password is no longer valid, and goes on when it is again', async () => {
  const server = await redis({ password: 'the-first-one' });
  const url = await gatewayFor(server);
  await server.command('CONFIG', 'SET', 'requirepass', 'another');
  await eventually(() => expectPassing(url, ['PING'], /nothing was executed/));
  await notReady(url, 'WRONGPASS');
  await server.command('CONFIG', 'SET', 'requirepass', 'the-first-one');
  await eventually(async () => expect((await kvRequest(url, ['PING'])).status).toBe(200));
});

it('starts with a wrong password, and goes on when it has become right', async () => {
  const server = await redis({ password: 'not-yet' });
  const gateway = await startGateway(
    { kv: { databases: [{ url: server.url.replace('not-yet', 'right') }] } },
    { ...OPERATOR_VARIABLES, PORTICO_REDIS_URL: '' },
  );
  stopLater(gateway);
  await expectPassing(gateway.url, ['PING'], /nothing was executed/);
  await notReady(gateway.url, 'WRONGPASS');
  await server.command('CONFIG', 'SET', 'requirepass', 'right');
  await eventually(async () => expect((await kvRequest(gateway.url, ['PING'])).status).toBe(200));
});
