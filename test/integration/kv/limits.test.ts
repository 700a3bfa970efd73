import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { backendAddress } from '../../support/environment.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { type KvCaller, kvCaller } from '../../support/kv/kv.js';

const PREFIX = `kv-limits:${randomBytes(4).toString('hex')}:`;
const key = (name: string) => `${PREFIX}${name}`;

const up = (caller: KvCaller) => eventually(async () => expect((await caller.run('PING')).status).toBe(200));

describe('size and length', () => {
  let gateway: RunningGateway;
  let kv: KvCaller;

  beforeAll(async () => {
    gateway = await startGateway({
      kv: { databases: [{ bodyLimit: 20_000, commandLimit: 2_000, pipelineLimit: 10 }] },
    });
    kv = kvCaller(`${gateway.url}/kv`);
    await up(kv);
  });

  afterAll(async () => {
    await kv.run('DEL', key('a'));
    await gateway.stop();
  });

  const large = ['SET', key('a'), 'é'.repeat(1_000)];
  const tooLarge = {
    error: expect.stringMatching(/^ERR max request size exceeded\. Limit: 2000 bytes, Actual: 20\d\d bytes$/),
  };

  test('a command beyond the limit is refused, in every form', async () => {
    expect(await kv.run(...large)).toMatchObject({ status: 413, body: tooLarge });
    const body = 'x'.repeat(2_000);
    expect(await kv.send(`/set/${key('a')}`, { method: 'POST', body })).toMatchObject({
      status: 413,
      body: tooLarge,
    });
    expect((await kv.pipeline(['SET', key('a'), 'small'], large, ['GET', key('a')])).body).toEqual([
      { result: 'OK' },
      tooLarge,
      { result: 'small' },
    ]);
  });

  test('it discards a transaction', async () => {
    const answer = await kv.transaction(['SET', key('a'), 'changed'], large);
    expect(answer).toMatchObject({ status: 413, body: tooLarge });
    expect((await kv.run('GET', key('a'))).text).toBe('{"result":"small"}');
  });

  test('a body beyond the limit is refused before it is read', async () => {
    const answer = await kv.run('SET', key('a'), 'x'.repeat(30_000));
    expect(answer).toMatchObject({
      status: 413,
      body: { error: expect.stringMatching(/^ERR max request size/) },
    });
  });

  test('more rows than the limit are refused as a whole', async () => {
    const rows = new Array(11).fill(['SET', key('a'), 'changed']);
    const error = 'ERR max pipeline length exceeded. Limit: 10 commands, Actual: 11 commands';
    expect(await kv.pipeline(...rows)).toMatchObject({ status: 400, body: { error } });
    expect(await kv.transaction(...rows)).toMatchObject({ status: 400, body: { error } });
    expect((await kv.run('GET', key('a'))).text).toBe('{"result":"small"}');
    expect((await kv.pipeline(...rows.slice(1))).status).toBe(200);
  });
});

describe('the daily limit', () => {
  const DATABASE = 12;
  const redis = new Redis(backendAddress('PORTICO_REDIS_URL'), { db: DATABASE, lazyConnect: true });
  const url = new URL(backendAddress('PORTICO_REDIS_URL'));
  url.pathname = `/${DATABASE}`;
  const today = () => `portico:requests:${new Date().toISOString().slice(0, 10)}`;
  let gateways: RunningGateway[] = [];

  const start = async (dailyRequestLimit: number) => {
    const gateway = await startGateway(
      { kv: { databases: [{ dailyRequestLimit }] } },
      { PORTICO_REDIS_URL: url.href },
    );
    gateways.push(gateway);
    const kv = kvCaller(`${gateway.url}/kv`);
    await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
    return kv;
  };

  beforeEach(() => redis.flushdb());
  afterEach(async () => {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    gateways = [];
  });
  afterAll(async () => {
    await redis.flushdb();
    redis.disconnect();
  });

  test('holds over gateways and restarts; what is beyond it does not run', async () => {
    const [one, two] = [await start(10), await start(10)];
    expect((await one.run('SET', 'a', '0')).status).toBe(200);
    await one.pipeline(...new Array(4).fill(['INCR', 'a']));
    // the second has not heard of the first until its own first command
    expect((await two.run('INCR', 'a')).status).toBe(200);
    await eventually(async () => expect(await redis.get(today())).toBe('6'));
    const rows = new Array(6).fill(['INCR', 'a']);
    const refused = {
      error: expect.stringMatching(/^ERR max daily request limit exceeded\. Limit: 10, Usage: \d+$/),
    };
    expect(await two.transaction(...rows)).toMatchObject({ status: 429, body: refused });
    expect((await two.pipeline(...rows)).body).toEqual([
      ...[6, 7, 8, 9].map((result) => ({ result })),
      refused,
      refused,
    ]);
    const over = await two.run('INCR', 'a');
    expect(over).toMatchObject({ status: 429, body: refused });
    expect(Number(over.headers.get('retry-after'))).toBeGreaterThan(0);
    const three = await start(10);
    await eventually(async () => expect((await three.run('PING')).status).toBe(429));
    expect(Number(await redis.get('a'))).toBe(9);
    expect(await redis.ttl(today())).toBeGreaterThan(86_400);
  });

  test('refused commands do not count, and a day has its own count', async () => {
    const kv = await start(3);
    await redis.set('portico:requests:2020-01-01', '1000');
    for (let i = 0; i < 5; i++) expect((await kv.run('SUBSCRIBE', 'x')).status).toBe(400);
    for (let i = 0; i < 3; i++) expect((await kv.run('PING')).status).toBe(200);
    expect((await kv.run('PING')).status).toBe(429);
  });
});
