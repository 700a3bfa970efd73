import { randomBytes } from 'node:crypto';
import { brokerUnderTest, type Failure } from '../../support/broker/broker.js';
import { brokerClient } from '../../support/broker/kafka.js';
import { TOKENS } from '../../support/tokens.js';

const PASSWORD = 'a-password-of-the-users-0123456789';
const prefix = `limit-${randomBytes(4).toString('hex')}.`;
const { kafka, call, url } = brokerUnderTest({
  users: [
    { username: TOKENS.username, password: TOKENS.password },
    { username: 'one', password: PASSWORD, topicPattern: `${prefix}*` },
    { username: 'few', password: PASSWORD, topicPattern: `${prefix}*`, maxInstances: 1 },
  ],
});
const as = (username: string) => brokerClient(url(), { username, password: PASSWORD });
const topic = `${prefix}shared`;

beforeAll(async () => {
  await kafka.exactTopic(topic);
  await kafka.addPartitions(topic, 2);
});

const consume = (client: typeof call, instance: string) =>
  client<Failure>(`/consume/${kafka.name('g')}/${instance}/${topic}?timeout=0`);

test('a user has at most as many instances as its topics have partitions, whatever others have', async () => {
  const one = as('one');
  for (const instance of ['a', 'b']) expect((await consume(one, instance)).status).toBe(200);
  const refused = await consume(one, 'c');
  expect(refused).toMatchObject({ status: 409, body: { status: 409 } });
  expect(refused.body.error).toContain('(2: maxInstances');
  // those that there are go on, those of others do not count
  expect((await consume(one, 'a')).status).toBe(200);
  expect((await consume(as('few'), 'a')).status).toBe(200);
  expect((await consume(call, 'a')).status).toBe(200);
  await one(`/delete-consumer/${kafka.name('g')}/a`, undefined, { method: 'POST' });
  expect((await consume(one, 'c')).status).toBe(200);
});

test('the configuration can allow less', async () => {
  expect((await consume(as('few'), 'a')).status).toBe(200);
  expect((await consume(as('few'), 'b')).status).toBe(409);
});

test('one that may use all topics has as many as all of them have partitions', async () => {
  const counts = (await call<Record<string, number>>('/topics')).body;
  const partitions = Object.values(counts).reduce((sum, count) => sum + count, 0);
  await call(`/delete-consumer/${kafka.name('g')}/a`, undefined, { method: 'POST' });
  for (let i = 0; i < partitions; i++) expect((await consume(call, `i${i}`)).status).toBe(200);
  expect((await consume(call, 'one more')).status).toBe(409);
});
