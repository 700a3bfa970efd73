import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { BoundRoute } from '../../../src/http/route.js';
import { brokerClient } from '../../support/broker/kafka.js';
import { eventually } from '../../support/eventually.js';
import { largeReply, startHttpCore, TOKEN } from '../../support/http-instance.js';
import { kvRequest } from '../../support/kv/kv.js';
import { removeQueueService, SHARED_PREFIX } from '../../support/queue/queue-cleanup.js';
import { RawClient } from '../../support/raw-client.js';
import { type SpawnedGateway, spawnGateway } from '../../support/spawned-gateway.js';
import { stopAfterEach } from '../../support/stop-after-each.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema } from '../../support/vector.js';

const MIB = 1024 * 1024;
const stopLater = stopAfterEach();
const AUTH = { authorization: `Bearer ${TOKEN}` };

/** A client that asks `times` on one connection and reads nothing. */
async function unreader(port: number, path: string, token: string, times = 1): Promise<RawClient> {
  const client = await RawClient.open(port);
  client.socket.pause();
  client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`.repeat(times));
  stopLater({ stop: async () => client.end() });
  return client;
}

/** More than the system takes of a reply before its client reads. */
const LARGE = 8 * MIB;

const once: BoundRoute = {
  ...(largeReply(LARGE) as Extract<BoundRoute, { kind: 'raw' }>),
  operationId: 'test.once',
  path: '/once',
  handle: async () => ({ status: 200, body: 'x'.repeat(LARGE), hasChangedData: true }),
};
const small: BoundRoute = {
  kind: 'raw',
  operationId: 'test.small',
  summary: 'Answers little.',
  methods: ['GET'],
  path: '/small',
  reply: z.unknown(),
  handle: async () => ({ status: 200, body: '{}' }),
};

async function core(replyBufferBytes: number) {
  const started = await startHttpCore({ replyBufferBytes }, { routes: [largeReply(LARGE), once, small] });
  stopLater(started);
  const get = (path: string) => fetch(`${started.url}/test/${path}`, { headers: AUTH });
  return { ...started, get };
}

it('bounds what waits for all clients together, refuses more by 503, and gives the room back', async () => {
  const { port, get, core: http } = await core(64 * MIB);
  const clients = [];
  for (let i = 0; i < 12; i++) clients.push(await unreader(port, '/test/large', TOKEN));
  // half of all is the most for one token
  await eventually(() => expect(http.replies.waiting).toBeGreaterThan(20 * MIB));
  const refused = await get('large');
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  expect(await refused.json()).toMatchObject({ code: 'overloaded', error: expect.stringContaining('wait') });
  expect(http.replies.waiting).toBeLessThanOrEqual(32 * MIB);
  expect((await get('small')).status).toBe(200);
  for (const client of clients) client.end();
  await eventually(() => expect(http.replies.waiting).toBe(0));
  expect((await (await get('large')).text()).length).toBe(LARGE + 3);
});

it('has a bound for one connection, on which later replies wait for earlier ones', async () => {
  const { port, core: http } = await core(66 * MIB);
  const client = await unreader(port, '/test/large', TOKEN, 10);
  await eventually(() => expect(http.replies.waiting).toBeGreaterThan(LARGE));
  const chunks: string[] = [];
  client.socket.removeAllListeners('data').on('data', (chunk: string) => chunks.push(chunk));
  client.socket.resume();
  client.write(
    `GET /test/small HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`,
  );
  await client.closed();
  const statuses = [...chunks.join('').matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
  expect(statuses).toHaveLength(11);
  expect(statuses.slice(0, 2)).toEqual(['200', '200']);
  expect(statuses).toContain('503');
  expect(statuses.at(-1)).toBe('200');
  await eventually(() => expect(http.replies.waiting).toBe(0));
});

it('sends what cannot be had again for as much once more, then says that it was carried out', async () => {
  const { port, get, core: http } = await core(32 * MIB);
  for (let i = 0; i < 4; i++) await unreader(port, '/test/large', TOKEN);
  await eventually(async () => expect((await get('large')).status).toBe(503));
  expect((await (await get('once')).text()).length).toBe(LARGE);
  for (let i = 0; i < 4; i++) await unreader(port, '/test/once', TOKEN);
  await eventually(async () => {
    const dropped = await get('once');
    const text = await dropped.text();
    expect(dropped.status).toBe(502);
    expect(dropped.headers.get('retry-after')).toBeNull();
    expect(text).toContain('was carried out');
  });
  expect(http.replies.waiting).toBeLessThanOrEqual(64 * MIB);
});

it('sends a reply that is larger than every bound when nothing else waits', async () => {
  const { get } = await core(MIB);
  expect((await (await get('large')).text()).length).toBe(LARGE + 3);
});

describe('all services in one process', () => {
  let gateway: SpawnedGateway;
  const port = () => Number(new URL(gateway.url).port);
  const key = `unread:${randomBytes(4).toString('hex')}`;
  const name = 'test_unread_replies';

  beforeAll(async () => {
    gateway = await spawnGateway({
      // a starved machine needs more than the default 60 s until all of them wait
      http: { replyIdleTimeoutMs: 600_000 },
      kv: {},
      vector: { database: { schema: `${name}_vector` } },
      broker: {},
      queue: { schema: name, prefix: SHARED_PREFIX },
    });
    await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
  });
  afterAll(async () => {
    await kvRequest(gateway.url, ['DEL', key]);
    await gateway.stop();
    await dropSchema(`${name}_vector`);
    await removeQueueService(name);
  });

  const residentMiB = () =>
    Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${gateway.process.pid}/status`, 'utf8'))?.[1]) / 1024;

  /** Statuses of a call to each service. */
  const others = async () => [
    (await kvRequest(gateway.url, ['GET', `${key}:small`])).status,
    (await fetch(`${gateway.url}/vector/info`, { headers: { authorization: `Bearer ${TOKENS.vector}` } }))
      .status,
    (await brokerClient(gateway.url)('/topics')).status,
    (await fetch(`${gateway.url}/queue/v2/queues`, { headers: { authorization: `Bearer ${TOKENS.queue}` } }))
      .status,
  ];

  test('40 clients with a read-only token that read nothing of 20 MB each hold up nobody, and little memory', async () => {
    await kvRequest(gateway.url, ['SET', key, 'x'.repeat(20_000_000)]);
    const before = residentMiB();
    let peak = before;
    const watch = setInterval(() => {
      peak = Math.max(peak, residentMiB());
    }, 20);
    stopLater({ stop: async () => clearInterval(watch) });
    for (let i = 0; i < 40; i++) await unreader(port(), `/kv/get/${key}`, TOKENS.kvReadOnly);
    const [refused] = await eventually(async () => {
      // in place of one whose reply came too late from Redis on a starved machine
      await unreader(port(), `/kv/get/${key}`, TOKENS.kvReadOnly);
      const replies = await Promise.all(
        [1, 2].map(() => kvRequest(gateway.url, ['GET', key], { token: TOKENS.kvReadOnly })),
      );
      expect(replies.map(({ status }) => status)).toEqual([503, 503]);
      // not because Redis is still busy with the first of them
      for (const { body } of replies) expect(body.error).toMatch(/^ERR Too many bytes of replies wait/);
      return replies;
    });
    expect(refused?.headers.get('retry-after')).toBe('1');
    // 800 MB have to come from Redis first, which takes a starved machine longer than a command may wait
    await eventually(async () => expect(await others()).toEqual([200, 200, 200, 200]));
    // somebody else's token has room
    expect((await kvRequest(gateway.url, ['STRLEN', key])).body).toEqual({ result: 20_000_000 });
    expect((await kvRequest(gateway.url, ['GET', key])).status).toBe(200);
    // the bound is 256 MiB; it was 1,121 MiB without one
    expect(peak - before).toBeLessThan(512);
  });
});
