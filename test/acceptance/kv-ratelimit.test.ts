import { randomBytes } from 'node:crypto';
import { MultiRegionRatelimit, Ratelimit } from '@upstash/ratelimit';
import { Redis } from '@upstash/redis';
import { eventually } from '../support/eventually.js';
import { type SpawnedGateway, spawnGateway } from '../support/spawned-gateway.js';
import { TOKENS } from '../support/tokens.js';

const PREFIX = `kv-ratelimit:${randomBytes(4).toString('hex')}`;

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

test.each([
  ['fixed window', Ratelimit.fixedWindow(5, '1 h')],
  ['sliding window', Ratelimit.slidingWindow(5, '1 h')],
  ['token bucket', Ratelimit.tokenBucket(5, '1 h', 5)],
])('%s: of ten calls at once five pass', async (name, limiter) => {
  // without the script in Redis' cache at first: its digest is tried, then its text
  await redis.scriptFlush();
  const limit = new Ratelimit({
    redis,
    limiter,
    prefix: `${PREFIX}:${name}`,
    ephemeralCache: false,
    timeout: 60_000,
  });
  const results = await Promise.all(Array.from({ length: 10 }, () => limit.limit('someone')));
  expect(results.filter(({ success }) => success).length).toBe(5);
  expect(results.map(({ reason }) => reason)).not.toContain('timeout');
  expect((await limit.limit('another')).remaining).toBe(4);
  expect((await limit.getRemaining('someone')).remaining).toBe(0);
  await limit.resetUsedTokens('someone');
  expect((await limit.limit('someone')).success).toBe(true);
});

test('a deny list blocks, and analytics count', async () => {
  const limit = new Ratelimit({
    redis,
    limiter: Ratelimit.slidingWindow(5, '1 h'),
    prefix: `${PREFIX}:protected`,
    analytics: true,
    enableProtection: true,
    ephemeralCache: false,
    timeout: 60_000,
  });
  await redis.sadd(`${PREFIX}:protected:denyList:all`, '203.0.113.7');
  // the list from outside that the client keeps up to date is not fetched before this key is gone
  await redis.set(`${PREFIX}:protected:ipDenyListStatus`, 'valid');
  const addresses = Array.from({ length: 5_000 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
  const lists = [`${PREFIX}:protected:denyList:all`, `${PREFIX}:protected:denyList:ipDenyList`] as const;
  // as the client fills it
  const filled = redis.multi().sdiffstore(lists[0], lists[0], lists[1]).del(lists[1]);
  filled.sadd(lists[1], addresses[0], ...addresses.slice(1)).sunionstore(lists[0], lists[0], lists[1]);
  expect(await filled.exec()).toEqual([1, 0, 5_000, 5_001]);
  const refused = await limit.limit('someone', { ip: '203.0.113.7' });
  await refused.pending;
  expect(refused).toMatchObject({ success: false, reason: 'denyList', deniedValue: '203.0.113.7' });
  const passed = await limit.limit('someone', { ip: '203.0.113.8' });
  await passed.pending;
  expect(passed.success).toBe(true);
  const events = await redis.keys(`${PREFIX}:protected:events:*`);
  expect(events.length).toBe(1);
  expect(await redis.zcard(events[0] as string)).toBe(2);
});

test('several databases at once', async () => {
  const limit = new MultiRegionRatelimit({
    // the package declares the same class twice, for its two module formats
    redis: [redis, new Redis({ url: `${gateway.url}/kv`, token: TOKENS.kv })] as never,
    limiter: MultiRegionRatelimit.fixedWindow(3, '1 h'),
    prefix: `${PREFIX}:regions`,
    ephemeralCache: false,
    timeout: 60_000,
  });
  for (let i = 0; i < 3; i++) {
    const { success, pending } = await limit.limit('someone');
    expect(success).toBe(true);
    await pending;
  }
  expect((await limit.limit('someone')).success).toBe(false);
});
