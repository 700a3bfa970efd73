import { randomBytes } from 'node:crypto';
import { Redis } from '@upstash/redis';
import { eventually, PROMPT_MS } from '../support/eventually.js';
import { type SpawnedGateway, spawnGateway } from '../support/spawned-gateway.js';
import { TOKENS } from '../support/tokens.js';

const PREFIX = `kv-streams-sdk:${randomBytes(4).toString('hex')}:`;
const name = (text: string) => `${PREFIX}${text}`;

let gateway: SpawnedGateway;
let redis: Redis;

const subscribers = async (channel: string) =>
  Number((await redis.exec<unknown[]>(['PUBSUB', 'NUMSUB', channel]))[1]);

beforeAll(async () => {
  // the client tells its own abort by `instanceof Error`, which jest's separate realm defeats, and then reports it
  jest.spyOn(console, 'error').mockImplementation(() => undefined);
  gateway = await spawnGateway({ kv: {} });
  redis = new Redis({ url: `${gateway.url}/kv`, token: TOKENS.kv });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});

afterAll(async () => {
  jest.restoreAllMocks();
  expect(await gateway.stop()).toBe(0);
});

test('subscribe: values come as they were published', async () => {
  const channel = name('a');
  const messages: unknown[] = [];
  const own: unknown[] = [];
  const errors: unknown[] = [];
  const subscriber = redis.subscribe(channel);
  const confirmed = new Promise((resolve) => subscriber.on('subscribe', resolve));
  subscriber.on('message', ({ message }) => messages.push(message));
  subscriber.on(`message:${channel}`, ({ message }) => own.push(message));
  subscriber.on('error', (error) => errors.push(error));
  expect(await confirmed).toBe(1);
  const values = ['text, with a comma', { a: [1, { b: null }], c: 'ö' }, 42, '', 'two words'];
  for (const value of values) expect(await redis.publish(channel, value)).toBe(1);
  await eventually(() => expect(messages).toEqual(values));
  expect(own).toEqual(values);
  // the client reads line by line: of text over several lines it gets the first, of JSON everything
  await redis.publish(channel, `one\nmessage,${channel},forged`);
  await redis.publish(channel, JSON.stringify({ a: 1 }, null, 2));
  await redis.publish(channel, 'end');
  await eventually(() => expect(messages.slice(values.length)).toEqual(['one', { a: 1 }, 'end']));
  expect(errors).toEqual([]);
  await subscriber.unsubscribe();
  await eventually(async () => expect(await subscribers(channel)).toBe(0));
});

test('subscribe: several channels, of which one is left', async () => {
  const [a, b] = [name('m1'), name('m2')];
  const messages: unknown[] = [];
  const counts: unknown[] = [];
  const subscriber = redis.subscribe<string>([a, b]);
  subscriber.on('subscribe', (count) => counts.push(count));
  subscriber.on('message', ({ channel, message }) => messages.push([channel, message]));
  await eventually(() => expect(counts).toEqual([1, 1]));
  await redis.publish(a, 'x');
  await redis.publish(b, 'y');
  await eventually(() =>
    expect(messages.sort()).toEqual([
      [a, 'x'],
      [b, 'y'],
    ]),
  );
  await subscriber.unsubscribe([a]);
  await eventually(async () => expect([await subscribers(a), await subscribers(b)]).toEqual([0, 1]));
  await redis.publish(b, 'z');
  await eventually(() => expect(messages).toHaveLength(3));
  await subscriber.unsubscribe();
  await eventually(async () => expect(await subscribers(b)).toBe(0));
});

test('psubscribe', async () => {
  const messages: unknown[] = [];
  const subscriber = redis.psubscribe<{ n: number }>(name('p*'));
  const confirmed = new Promise((resolve) => subscriber.on('psubscribe', resolve));
  subscriber.on('pmessage', (event) => messages.push(event));
  expect(await confirmed).toBe(1);
  await redis.publish(name('p1'), { n: 1 });
  await eventually(() =>
    expect(messages).toEqual([{ pattern: name('p*'), channel: name('p1'), message: { n: 1 } }]),
  );
  await subscriber.unsubscribe();
});

test('a refusal is an error event', async () => {
  const stranger = new Redis({ url: `${gateway.url}/kv`, token: 'wrong' });
  const subscriber = stranger.subscribe(name('refused'));
  const error = await new Promise((resolve) => subscriber.on('error', resolve));
  expect(String(error)).toMatch(/WRONGPASS/);
});

test('a stop of the gateway ends streams at once', async () => {
  const own = await spawnGateway({ kv: {} });
  const client = new Redis({ url: `${own.url}/kv`, token: TOKENS.kv });
  const counts: unknown[] = [];
  for (const channel of ['s1', 's2', 's3'])
    client.subscribe(name(channel)).on('subscribe', (n) => counts.push(n));
  await eventually(() => expect(counts).toEqual([1, 1, 1]));
  const startedAt = performance.now();
  expect(await own.stop()).toBe(0);
  expect(performance.now() - startedAt).toBeLessThan(PROMPT_MS);
});
