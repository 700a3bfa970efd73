import { brokerUnderTest, type Failure } from '../../support/broker/broker.js';

type Offset = { topic: string; partition: number; offset: number };

const { kafka, call } = brokerUnderTest();

/** A topic of 3 partitions: 2, 1 and no records, at the times 1000, 2000 and 3000. */
async function filled(): Promise<string> {
  const topic = await kafka.topic(`offsets-${Math.random()}`, 3);
  await call(`/produce/${topic}`, [
    { partition: 0, value: 'a', timestamp: 1_000 },
    { partition: 0, value: 'b', timestamp: 2_000 },
    { partition: 1, value: 'c', timestamp: 3_000 },
  ]);
  return topic;
}

const all = (topic: string) => [0, 1, 2].map((partition) => ({ topic, partition }));

test.each([
  ['earliest', [0, 0, 0]],
  ['latest', [2, 1, 0]],
  ['0', [0, 0, 0]],
  ['1', [0, 0, 0]],
  ['1000', [0, 0, 0]],
  ['1001', [1, 0, 0]],
  ['2500', [2, 0, 0]],
  ['999999999999999', [2, 1, 0]],
])('offsets at %s', async (timestamp, expected) => {
  const topic = await filled();
  const { status, body } = await call<Offset[]>(`/offsets/${timestamp}/?timeout=30000`, all(topic));
  expect({ status, body }).toEqual({
    status: 200,
    body: expected.map((offset, partition) => ({ topic, partition, offset })),
  });
});

test('one object, any order, a partition twice', async () => {
  const topic = await filled();
  expect((await call<Offset[]>('/offsets/latest', { topic, partition: 1 })).body).toEqual([
    { topic, partition: 1, offset: 1 },
  ]);
  const asked = [1, 0, 1].map((partition) => ({ topic, partition }));
  expect((await call<Offset[]>('/offsets/latest', asked)).body.map(({ offset }) => offset)).toEqual([
    1, 2, 1,
  ]);
});

test('committed offsets by group, in the order asked, -1 where there is none, without an instance', async () => {
  const topic = await filled();
  const group = kafka.name(`committed-${Math.random()}`);
  const path = `/committed/${group}/nobody`;
  const none = await call<Offset[]>(path, all(topic));
  expect(none).toMatchObject({ status: 200, body: all(topic).map((one) => ({ ...one, offset: -1 })) });
  const headers = { 'Kafka-Auto-Offset-Reset': 'earliest', 'Kafka-Enable-Auto-Commit': 'false' };
  await call(`/consume/${group}/i/${topic}?timeout=30000`, undefined, { headers });
  await call(`/commit/${group}/i`, [
    { topic, partition: 0, offset: 1 },
    { topic, partition: 1, offset: 0 },
  ]);
  const asked = [...all(topic)].reverse();
  expect((await call<Offset[]>(`${path}?timeout=30000`, asked)).body.map(({ offset }) => offset)).toEqual([
    -1, 0, 1,
  ]);
  expect((await call<Offset[]>(path, { topic, partition: 0 })).body).toEqual([
    { topic, partition: 0, offset: 1 },
  ]);
  await call(`/delete-consumer/${group}/i`, undefined, { method: 'POST' });
  expect((await call<Offset[]>(path, { topic, partition: 0 })).body[0]?.offset).toBe(1);
});

test.each([
  ['no body', undefined, 400],
  ['an empty list', [], 400],
  ['no partition', { topic: 'x' }, 400],
  ['a negative partition', { topic: 'x', partition: -1 }, 400],
  ['an unknown topic', { topic: 'test-no-such-topic', partition: 0 }, 404],
])('both refuse %s', async (_name, body, status) => {
  for (const path of ['/committed/g/i', '/offsets/latest'])
    expect(await call<Failure>(path, body)).toMatchObject({ status, body: { status } });
});

test('both refuse a partition that is too high', async () => {
  const topic = await filled();
  for (const path of ['/committed/g/i', '/offsets/latest']) {
    const refused = await call<Failure>(path, { topic, partition: 3 });
    expect(refused).toMatchObject({ status: 400, body: { status: 400 } });
    expect(refused.body.error).toMatch(/0 to 2/);
  }
});

test.each(['-1', 'soon', '1.5'])('%s is no point in time', async (timestamp) => {
  const refused = await call<Failure>(`/offsets/${timestamp}`, { topic: 'x', partition: 0 });
  expect(refused).toMatchObject({ status: 400, body: { status: 400 } });
});
