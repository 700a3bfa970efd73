import { randomBytes } from 'node:crypto';
import { Redis } from '@upstash/redis';
import { eventually } from '../support/eventually.js';
import { type SpawnedGateway, spawnGateway } from '../support/spawned-gateway.js';
import { TOKENS } from '../support/tokens.js';

const PREFIX = `kv-sdk:${randomBytes(4).toString('hex')}:`;
const key = (name: string) => `${PREFIX}${name}`;

let gateway: SpawnedGateway;
let redis: Redis;

beforeAll(async () => {
  gateway = await spawnGateway({ kv: {} });
  redis = new Redis({ url: `${gateway.url}/kv`, token: TOKENS.kv });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});

afterAll(async () => {
  const keys = await redis.keys(`${PREFIX}*`);
  if (keys.length > 0) await redis.del(...keys);
  expect(await gateway.stop()).toBe(0);
});

test('strings, numbers, objects and expiry', async () => {
  expect(await redis.set(key('s'), 'größer', { ex: 100 })).toBe('OK');
  expect(await redis.get(key('s'))).toBe('größer');
  expect(await redis.ttl(key('s'))).toBeGreaterThan(90);
  await redis.set(key('o'), { a: [1, { b: null }], c: true });
  expect(await redis.get(key('o'))).toEqual({ a: [1, { b: null }], c: true });
  expect(await redis.incrby(key('n'), 41)).toBe(41);
  expect(await redis.get(key('none'))).toBeNull();
  await redis.set(key('ok'), 'OK');
  expect(await redis.get(key('ok'))).toBe('OK');
  await redis.set(key('big'), '9007199254740993');
  expect(await redis.get(key('big'))).toBe('9007199254740993');
});

test('hashes, lists, sets, sorted sets and streams', async () => {
  await redis.hset(key('h'), { name: 'x', two: 2, list: ['OK', 1] });
  expect(await redis.hgetall(key('h'))).toEqual({ name: 'x', two: 2, list: ['OK', 1] } as Record<
    string,
    unknown
  >);
  await redis.rpush<string | number>(key('l'), 'a', 'OK', 3);
  expect(await redis.lrange(key('l'), 0, -1)).toEqual(['a', 'OK', 3]);
  await redis.sadd(key('m'), 'x');
  expect(await redis.smembers(key('m'))).toEqual(['x']);
  await redis.zadd(key('z'), { score: 1.5, member: 'half' }, { score: 2, member: 'two' });
  expect(await redis.zrange(key('z'), 0, -1, { withScores: true })).toEqual(['half', 1.5, 'two', 2]);
  const id = await redis.xadd(key('x'), '*', { field: 'value' });
  expect(await redis.xrange(key('x'), '-', '+')).toEqual({ [id]: { field: 'value' } });
  const [cursor, found] = await redis.scan('0', { match: `${PREFIX}h`, count: 10_000 });
  expect([cursor, found]).toEqual(['0', [key('h')]]);
});

test('commands that are issued together travel together', async () => {
  const values = await Promise.all(
    Array.from({ length: 200 }, async (_, i) => {
      await redis.set(key(`auto:${i}`), `value ${i}`);
      return redis.get(key(`auto:${i}`));
    }),
  );
  expect(values).toEqual(Array.from({ length: 200 }, (_, i) => `value ${i}`));
});

test('pipelines and transactions', async () => {
  const pipeline = redis.pipeline();
  pipeline.set(key('p'), 1).incr(key('p')).get(key('p'));
  expect(await pipeline.exec()).toEqual(['OK', 2, 2]);
  const kept = await redis.pipeline().set(key('p'), 'x').incr(key('p')).exec({ keepErrors: true });
  expect(kept[0]).toEqual({ result: 'OK', error: undefined });
  expect(kept[1]?.error).toMatch(/not an integer/);
  expect(await redis.multi().set(key('t'), 1).incrby(key('t'), 4).exec()).toEqual(['OK', 5]);
  // a row that Redis cannot take discards the whole
  const broken = redis.multi().incr(key('t')).exists();
  await expect(broken.exec()).rejects.toThrow(/wrong number of arguments/);
  expect(await redis.get(key('t'))).toBe(5);
});

test('scripts: the text is sent once, then its digest', async () => {
  const script = redis.createScript<string[]>('return {KEYS[1], ARGV[1], redis.call("INCR", KEYS[1])}');
  expect(await script.exec([key('script')], ['a'])).toEqual([key('script'), 'a', 1]);
  expect(await script.exec([key('script')], ['b'])).toEqual([key('script'), 'b', 2]);
});

test('errors reach the caller with the text of Redis', async () => {
  await redis.set(key('wrong'), 'x');
  await expect(redis.lpush(key('wrong'), 'y')).rejects.toThrow(/WRONGTYPE/);
  const stranger = new Redis({ url: `${gateway.url}/kv`, token: 'wrong', retry: false });
  await expect(stranger.get(key('s'))).rejects.toThrow(/WRONGPASS/);
});

test('the read-only token', async () => {
  const reader = new Redis({ url: `${gateway.url}/kv`, token: TOKENS.kvReadOnly });
  await redis.set(key('shared'), 'v');
  expect(await reader.get(key('shared'))).toBe('v');
  await expect(reader.set(key('shared'), 'w')).rejects.toThrow(/NOPERM/);
  await expect(reader.scan('0')).rejects.toThrow(/NOPERM/);
});
