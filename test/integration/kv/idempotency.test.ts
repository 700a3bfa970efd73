import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { backendAddress } from '../../support/environment.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { kvCaller } from '../../support/kv/kv.js';
import { startRelay } from '../../support/tcp-relay.js';
import { TOKENS } from '../../support/tokens.js';

const PREFIX = `idempotency:${randomBytes(4).toString('hex')}`;
const redis = new Redis(backendAddress('PORTICO_REDIS_URL'));
let gateways: RunningGateway[];

beforeAll(async () => {
  gateways = await Promise.all([startGateway({ kv: {} }), startGateway({ kv: {} })]);
});
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  const keys = [...(await redis.keys(`${PREFIX}*`)), ...(await redis.keys('portico:idempotency:*'))];
  if (keys.length > 0) await redis.del(...keys);
  redis.disconnect();
});

let count = 0;
const freshKey = () => `${PREFIX}:${count++}`;

/** A request by one of the gateways with an `Idempotency-Key`. */
function ask(key: string, command: unknown, { at = 0, path = '', token = TOKENS.kv, ...init }: Ask = {}) {
  const { url } = gateways[at] as RunningGateway;
  return kvCaller(`${url}/kv`, token).send(path, {
    method: 'POST',
    body: JSON.stringify(command),
    headers: { 'idempotency-key': key },
    ...init,
  });
}

interface Ask extends RequestInit {
  readonly at?: number;
  readonly path?: string;
  readonly token?: string;
}

test.each([
  ['a command', (key: string) => ['INCR', key], '', { result: 1 }],
  ['a pipeline', (key: string) => [['INCR', key]], '/pipeline', [{ result: 1 }]],
  ['a transaction', (key: string) => [['INCR', key]], '/multi-exec', [{ result: 1 }]],
])('%s with the same key is done once, whichever gateway gets it', async (_, command, path, body) => {
  const key = freshKey();
  const first = await ask(key, command(key), { path });
  expect(first).toMatchObject({ status: 200, body });
  expect(first.headers.get('idempotent-replayed')).toBeNull();
  for (const at of [0, 1]) {
    const again = await ask(key, command(key), { path, at });
    expect(again).toMatchObject({ status: 200, body });
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(again.headers.get('upstash-sync-token')).toBe(first.headers.get('upstash-sync-token'));
  }
  expect(await redis.get(key)).toBe('1');
});

test('of several at once one is done; the others are told to wait or get its reply', async () => {
  const key = freshKey();
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, i) => ask(key, ['INCR', key], { at: i % 2 })),
  );
  for (const { status, body } of replies)
    expect(status === 200 ? body : status).toEqual(status === 200 ? { result: 1 } : 409);
  expect(replies.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(1);
  expect(await redis.get(key)).toBe('1');
});

test('what differs is refused with 422, and what another token sends is its own', async () => {
  const key = freshKey();
  await ask(key, ['SET', key, 'a']);
  const other = await ask(key, ['SET', key, 'b']);
  expect(other).toMatchObject({
    status: 422,
    body: { error: expect.stringMatching(/^ERR This Idempotency-Key/) },
  });
  const encoded = { headers: { 'idempotency-key': key, 'upstash-encoding': 'base64' } };
  expect((await ask(key, ['SET', key, 'a'], encoded)).status).toBe(422);
  expect(await ask(key, ['GET', key], { token: TOKENS.kvReadOnly })).toMatchObject({ body: { result: 'a' } });
  expect((await ask('with a blank', ['GET', key])).status).toBe(400);
});

test('a reply that its client did not wait for is there for the next', async () => {
  const [key, stream] = [freshKey(), freshKey()];
  const command = ['XREAD', 'BLOCK', '30000', 'STREAMS', stream, '$'];
  const leaving = new AbortController();
  const left = ask(key, command, { signal: leaving.signal });
  left.catch(() => undefined);
  await eventually(async () => {
    const again = await ask(key, command, { at: 1 });
    expect(again.status).toBe(409);
    expect(again.headers.get('retry-after')).toBe('1');
  });
  // until it waits, what is added does not count
  await eventually(async () => expect(await redis.client('LIST')).toMatch(/cmd=xread/));
  leaving.abort();
  await expect(left).rejects.toThrow();
  await redis.xadd(stream, '*', 'field', 'value');
  const again = await eventually(async () => {
    const reply = await ask(key, command, { at: 1 });
    expect(reply.status).toBe(200);
    return reply;
  });
  expect(again.text).toContain('field');
  expect(again.headers.get('idempotent-replayed')).toBe('true');
});

test('what was refused may be sent again, and nothing of it is kept', async () => {
  const key = freshKey();
  for (let i = 0; i < 2; i++) {
    const refused = await ask(key, ['SUBSCRIBE', 'x']);
    expect(refused.status).toBe(400);
    expect(refused.headers.get('idempotent-replayed')).toBeNull();
  }
  expect(await ask(key, ['INCR', key])).toMatchObject({ body: { result: 1 } });
});

test('while Redis is away nothing is executed; afterwards the same key is', async () => {
  const url = new URL(backendAddress('PORTICO_REDIS_URL'));
  const relay = await startRelay(Number(url.port));
  url.port = String(relay.port);
  const gateway = await startGateway({ kv: {} }, { PORTICO_REDIS_URL: url.href });
  const key = freshKey();
  const incr = () =>
    kvCaller(`${gateway.url}/kv`).send('', {
      method: 'POST',
      body: JSON.stringify(['INCR', key]),
      headers: { 'idempotency-key': key },
    });
  relay.cut();
  await eventually(async () => expect((await incr()).status).toBe(503));
  relay.release();
  await eventually(async () => expect(await incr()).toMatchObject({ status: 200, body: { result: 1 } }));
  expect(await incr()).toMatchObject({ status: 200, body: { result: 1 } });
  await gateway.stop();
  await relay.stop();
});

test('of a call whose gateway has ended nobody knows what became of it', async () => {
  const key = freshKey();
  await ask(key, ['INCR', key]);
  for (const kept of await redis.keys('portico:idempotency:*')) {
    const { fingerprint } = JSON.parse(String(await redis.get(kept))) as { fingerprint: string };
    await redis.set(kept, JSON.stringify({ fingerprint, until: 0 }));
  }
  const again = await ask(key, ['INCR', key], { at: 1 });
  expect(again).toMatchObject({ status: 409, body: { error: expect.stringContaining('is not known') } });
  expect(again.headers.get('retry-after')).toBeNull();
  expect(await redis.get(key)).toBe('1');
});

test('a long reply is not kept, and the call is not made again', async () => {
  const key = freshKey();
  await redis.set(key, 'x'.repeat(300_000));
  const command = ['GETSET', key, 'short'];
  expect((await ask(key, command)).status).toBe(200);
  const again = await ask(key, command);
  expect(again).toMatchObject({
    status: 409,
    body: { error: expect.stringContaining('too long to be kept') },
  });
  expect(await redis.get(key)).toBe('short');
});

test('a database may go without', async () => {
  const gateway = await startGateway({ kv: { databases: [{ idempotencyWindow: 0 }] } });
  const key = freshKey();
  const kv = kvCaller(`${gateway.url}/kv`);
  const init = { method: 'POST', body: JSON.stringify(['INCR', key]), headers: { 'idempotency-key': key } };
  await eventually(async () => expect((await kv.send('', init)).status).toBe(200));
  const second = (await kv.send('', init)).body as { result: number };
  expect(second.result).toBeGreaterThan(1);
  await gateway.stop();
});
