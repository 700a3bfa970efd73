import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { backend } from '../../support/backend.js';
import { backendAddress } from '../../support/environment.js';
import { EventStreamClient } from '../../support/event-stream.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { TOKENS } from '../../support/tokens.js';

const PREFIX = `kv-stream-faults:${randomBytes(4).toString('hex')}:`;
const name = (text: string) => `${PREFIX}${text}`;
const server = backend('redis');

let gateway: RunningGateway;
let redis: Redis;
const streams: EventStreamClient[] = [];

const open = async (path: string, url = gateway.url) => {
  const stream = await EventStreamClient.open(`${url}/kv${path}`, TOKENS.kv);
  streams.push(stream);
  return stream;
};
const ready = () => eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));

beforeAll(async () => {
  gateway = await startGateway({ kv: { databases: [{ timeoutMs: 4_000 }] } });
  redis = new Redis(backendAddress('PORTICO_REDIS_URL'));
  redis.on('error', () => undefined);
  await ready();
});

afterEach(() => {
  for (const stream of streams.splice(0)) stream.close();
});

afterAll(async () => {
  await server.resume().catch(() => undefined);
  await server.start();
  await gateway.stop();
  redis.disconnect();
});

const gapsOf = ({ text }: EventStreamClient) => text.split(': reconnected\n\n').length - 1;

/** Both go on, after they were told that messages may be missing. */
async function expectRestored(channel: string, subscribed: EventStreamClient, monitor: EventStreamClient) {
  await eventually(() => expect(gapsOf(subscribed)).toBe(1));
  await redis.publish(channel, 'after');
  await eventually(() =>
    expect(subscribed.text).toContain(`: reconnected\n\ndata: message,${channel},after\n\n`),
  );
  // the monitor has a connection of its own, which may be back later than the subscriber's
  await eventually(async () => {
    await redis.publish(channel, 'after');
    expect(monitor.text).toContain(`"publish" "${channel}" "after"`);
  });
  expect([subscribed.ended, monitor.ended]).toEqual([false, false]);
}

test('Redis killed and back: streams stay and go on, new ones are refused meanwhile', async () => {
  const channel = name('killed');
  const subscribed = await open(`/subscribe/${channel}/${name('second')}`);
  const monitor = await open('/monitor');
  await server.kill();
  await eventually(async () => {
    const refused = await open(`/subscribe/${channel}`);
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1']);
    expect(await refused.untilEnd()).toMatch(/^\{"error":"ERR .*not available/);
  });
  expect((await open('/monitor')).status).toBe(503);
  await server.start();
  await eventually(() => expect(gapsOf(monitor)).toBe(1));
  await expectRestored(channel, subscribed, monitor);
  await ready();
  expect((await open(`/subscribe/${channel}`)).status).toBe(200);
});

test('Redis stopped in its tracks: the silence is noticed, and streams go on afterwards', async () => {
  const channel = name('paused');
  const subscribed = await open(`/subscribe/${channel}`);
  const monitor = await open('/monitor');
  await server.pause();
  const startedAt = performance.now();
  try {
    await eventually(async () => expect((await open(`/subscribe/${name('new')}`)).status).toBe(503));
    // half a deadline until the question, a whole one for its answer
    expect(performance.now() - startedAt).toBeLessThan(30_000);
    expect(subscribed.ended).toBe(false);
  } finally {
    await server.resume();
  }
  await expectRestored(channel, subscribed, monitor);
});

test('a script that holds up Redis: new streams get 503, what was left meanwhile is given up later', async () => {
  const channel = name('busy');
  const left = await open(`/subscribe/${channel}`);
  const [, limit] = (await redis.config('GET', 'lua-time-limit')) as [string, string];
  const script = redis.duplicate();
  try {
    await redis.config('SET', 'lua-time-limit', '10');
    script.eval('while true do end', 0).catch(() => undefined);
    await eventually(() => expect(redis.ping()).rejects.toThrow(/BUSY/));
    const refused = await open(`/subscribe/${name('other')}`);
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1']);
    expect(await refused.untilEnd()).toMatch(/^\{"error":"BUSY /);
    left.close();
    const count = async () =>
      / (\d+)$/m.exec(
        /portico_kv_streams_open\{.*"subscribe"\} \d+/.exec(
          await (await fetch(`${gateway.url}/metrics`)).text(),
        )?.[0] as string,
      )?.[1];
    await eventually(async () => expect(await count()).toBe('0'));
  } finally {
    await redis.script('KILL');
    // the script ends a moment later
    await eventually(() => redis.config('SET', 'lua-time-limit', limit));
    script.disconnect();
  }
  await eventually(async () => expect(await redis.pubsub('CHANNELS', `${PREFIX}*`)).toEqual([]));
});

test('a new password of the shared connection ends the streams', async () => {
  const user = name('shared').replaceAll(':', '-');
  const setUser = (...rules: string[]) => redis.call('ACL', 'SETUSER', user, ...rules);
  await setUser('reset', 'on', '>first-password-of-user', '~*', '&*', '+@all');
  const url = new URL(backendAddress('PORTICO_REDIS_URL'));
  url.username = user;
  url.password = 'first-password-of-user';
  const own = await startGateway({ kv: {} }, { PORTICO_REDIS_URL: url.href });
  try {
    const stream = await open(`/subscribe/${name('password')}`, own.url);
    expect(stream.status).toBe(200);
    await setUser('resetpass', '>second-password-of-user');
    await stream.untilEnd();
    expect((await open(`/subscribe/${name('password')}`, own.url)).status).toBe(503);
  } finally {
    await own.stop();
    await redis.call('ACL', 'DELUSER', user);
  }
});
