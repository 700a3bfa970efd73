import { brokerUnderTest, type Failure } from '../../support/broker/broker.js';
import { brokerClient } from '../../support/broker/kafka.js';
import { TOKENS } from '../../support/tokens.js';

type Groups = { name: string; instances: { name: string }[] }[];

const PASSWORD = 'a-password-of-the-users-0123456789';
const NAMES = ['writer', 'reader', 'literal', 'shared', 'slow', 'thin'] as const;
const prefix = `users-${Math.random().toString(36).slice(2)}.`;
const user = (username: string, settings: object) => ({ username, password: PASSWORD, ...settings });
const { kafka, call, url } = brokerUnderTest({
  users: [
    { username: TOKENS.username, password: TOKENS.password },
    user('writer', { topicPattern: `${prefix}*`, permission: 'produce' }),
    user('reader', { topicPattern: `${prefix}*`, permission: 'consume' }),
    user('literal', { topicPattern: `${prefix}one` }),
    user('shared', { topicPattern: `${prefix}*`, groupPrefix: 'reader:' }),
    user('slow', { recordsPerSecond: 5 }),
    user('thin', { bytesPerSecond: 1_000 }),
  ],
});
const as = (name: (typeof NAMES)[number]) => brokerClient(url(), { username: name, password: PASSWORD });

beforeAll(async () => {
  for (const name of ['one', 'one-more']) await kafka.exactTopic(prefix + name);
  await call(
    '/produce',
    ['one', 'one-more'].map((name) => ({ topic: prefix + name, value: name })),
  );
});

test("a pattern of * alone has no room for Kafka's own topics", async () => {
  const offsets = { topic: '__consumer_offsets', partition: 0, offset: 0 };
  expect((await call('/fetch', offsets)).status).toBe(403);
  expect((await call('/consume/g/i', { topic: '__consumer_offsets' })).status).toBe(403);
  expect((await call('/produce/__consumer_offsets', { value: 'x' })).status).toBe(403);
  expect((await call('/offsets/latest', offsets)).status).toBe(403);
  expect((await call('/committed/g/i', offsets)).status).toBe(403);
});

const one = `${prefix}one`;
const position = { topic: one, partition: 0 };

test.each([
  ['writer', 'produce', `/produce/${one}`, { value: 'x' }, 200],
  ['writer', 'webhook', `/webhook?topic=${one}`, 'x', 200],
  ['writer', 'offsets', '/offsets/latest', position, 200],
  ['writer', 'fetch', '/fetch', { ...position, offset: 0 }, 403],
  ['writer', 'consume', '/consume/g/i', { topic: one }, 403],
  ['writer', 'commit', '/commit/g/i', undefined, 403],
  ['writer', 'delete', '/delete-consumer/g/i', undefined, 403],
  ['writer', 'committed', '/committed/g/i', position, 403],
  ['reader', 'produce', `/produce/${one}`, { value: 'x' }, 403],
  ['reader', 'produce from the path', `/produce/${one}/x`, undefined, 403],
  ['reader', 'webhook', `/webhook?topic=${one}`, 'x', 403],
  ['reader', 'fetch', '/fetch', { ...position, offset: 0 }, 200],
  ['reader', 'committed', '/committed/g/i', position, 200],
  ['literal', 'produce', `/produce/${one}`, { value: 'x' }, 200],
  ['literal', 'produce elsewhere', `/produce/${one}-more`, { value: 'x' }, 403],
  [
    'literal',
    'produce to several',
    '/produce',
    [
      { topic: one, value: 'x' },
      { topic: `${one}-more`, value: 'x' },
    ],
    403,
  ],
  ['literal', 'fetch elsewhere', '/fetch', { topic: `${one}-more`, partition: 0 }, 403],
  ['literal', 'offsets elsewhere', '/offsets/latest', { topic: `${one}-more`, partition: 0 }, 403],
  ['literal', 'consume a topic that is not there', '/consume/g/i', { topic: 'test-no-such-topic' }, 403],
  ['literal', 'commit elsewhere', '/commit/g/i', { topic: `${one}-more`, partition: 0, offset: 0 }, 403],
] as const)('%s: %s', async (name, _what, path, body, status) => {
  const options = body === undefined && /commit|delete/.test(path) ? { method: 'POST' } : {};
  const reply = await as(name)<Failure>(path, body, options);
  expect({ status: reply.status, body: reply.body }).toMatchObject({ status });
  if (status === 403)
    expect(reply.body).toMatchObject({ status: 403, error: expect.stringMatching(/credentials may/) });
});

test('a wrong password, and that of another user', async () => {
  for (const password of ['wrong', TOKENS.password])
    expect((await brokerClient(url(), { username: 'reader', password })('/topics')).status).toBe(401);
});

test('topics are those of the pattern', async () => {
  const topics = async (name: (typeof NAMES)[number]) =>
    Object.keys((await as(name)<object>('/topics')).body).sort();
  expect(await topics('literal')).toEqual([one]);
  expect(await topics('reader')).toEqual([one, `${one}-more`]);
});

test('groups of different users do not meet, unless configured', async () => {
  const group = kafka.name('same');
  const consume = (name: (typeof NAMES)[number]) =>
    as(name)(`/consume/${group}/i-${name}/${one}?timeout=30000`, undefined, {
      headers: { 'Kafka-Auto-Offset-Reset': 'earliest', 'Kafka-Enable-Auto-Commit': 'false' },
    });
  expect((await consume('literal')).body.length).toBeGreaterThan(0);
  expect((await consume('reader')).body.length).toBeGreaterThan(0);
  const shown = async (name: (typeof NAMES)[number]) =>
    (await as(name)<Groups>('/consumers')).body.map((one) => [one.name, one.instances.map((i) => i.name)]);
  expect(await shown('literal')).toEqual([[group, ['i-literal']]]);
  expect(await shown('reader')).toEqual([[group, ['i-reader']]]);
  expect(await shown('shared')).toEqual([[group, ['i-reader']]]);
  expect(await kafka.members(`reader:${group}`)).toBe(1);
  const foreign = await call<Failure>(`/consume/reader:${group}/i/${one}`);
  expect(foreign).toMatchObject({ status: 403, body: { status: 403 } });
  expect((await call<Groups>('/consumers')).body.filter(({ name }) => name.includes(group))).toEqual([]);
  for (const name of ['literal', 'reader'] as const)
    await as(name)(`/delete-consumer/${group}/i-${name}`, undefined, { method: 'POST' });
});

test('quotas: what a user has written or read too much is waited for, told by 429 and Retry-After', async () => {
  const topic = `${prefix}one-more`;
  const [slow, thin] = [as('slow'), as('thin')];
  const values = Array.from({ length: 500 }, (_, i) => ({ value: `${i}` }));
  // one request may take more than a second's records
  expect((await slow(`/produce/${topic}`, values)).status).toBe(200);
  const late = await slow(`/produce/${topic}`, { value: 'late' });
  expect(late).toMatchObject({ status: 429, body: { status: 429, error: expect.stringContaining('quota') } });
  expect(Number(late.headers.get('retry-after'))).toBeGreaterThan(50);
  expect((await slow('/fetch', { topic, partition: 0, offset: 0 })).status).toBe(429);
  expect((await slow('/consume/quota/one', { topic })).status).toBe(429);
  // others are not held up, and nothing was written
  const all = (await thin('/fetch', { topic, partition: 0, offset: 0, timeout: 5_000 })).body as object[];
  expect(all).toHaveLength(501);
  expect(JSON.stringify(all)).not.toContain('late');
  expect((await thin('/fetch', { topic, partition: 0, offset: 0 })).status).toBe(429);
  expect((await thin(`/webhook?topic=${topic}`, 'x')).status).toBe(429);
  expect((await call('/fetch', { topic, partition: 0, offset: 0 })).status).toBe(200);
});
