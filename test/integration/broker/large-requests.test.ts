import { brokerUnderTest, type Failure } from '../../support/broker/broker.js';

/** Well below the 10 s after which a request is cut off with another error. */
const SOON_MS = 8_000;

const { kafka, call } = brokerUnderTest();

const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

test('a fetch of very many offsets is refused at once', async () => {
  const topic = await kafka.topic('offsets');
  const many = await call<Failure>('/fetch', {
    topicPartitionOffsets: times(9_999, (offset) => ({ topic, partition: 0, offset })),
  });
  expect(many).toMatchObject({ status: 400, body: { status: 400 } });
  expect(many.ms).toBeLessThan(SOON_MS);
  const fewer = await call<Failure>('/fetch', {
    topicPartitionOffsets: times(101, (offset) => ({ topic, partition: 0, offset })),
  });
  expect(fewer.body.error).toMatch(
    /^At most 100 offsets of one partition .* partition 0 of .* there are 101\.$/,
  );
});

test('a fetch of a hundred offsets of each of many partitions has the records of all, each once', async () => {
  const topic = await kafka.topic('partitions', 20);
  const records = times(20 * 5, (i) => ({ value: `v${i}`, partition: i % 20 }));
  expect(await call(`/produce/${topic}`, records)).toMatchObject({ status: 200 });
  const topicPartitionOffsets = times(20 * 5, (i) => ({
    topic,
    partition: i % 20,
    offset: Math.floor(i / 20),
  }));
  const { status, headers, body } = await call('/fetch', {
    topicPartitionOffsets: [...topicPartitionOffsets, ...topicPartitionOffsets],
  });
  expect([status, headers.get('broker-partition-errors')]).toEqual([200, null]);
  // from offset n on there are 5 - n records
  expect(body).toHaveLength(20 * (5 + 4 + 3 + 2 + 1));
  expect(new Set(body.map(({ value }) => value)).size).toBe(100);
});

test('a request that names very many topics is told that the first is unknown', async () => {
  const names = times(100_000, (i) => kafka.name(`none-${i}`));
  const produced = await call<Failure>(
    '/produce',
    names.map((topic) => ({ topic, value: 'x' })),
  );
  const path = `/consume/${kafka.name('g')}/i`;
  const consumed = await call<Failure>(path, { topics: names.slice(0, 10_000) });
  for (const { status, body } of [produced, consumed]) {
    expect(body).toEqual({ error: `There is no topic ${names[0]}.`, status: 404 });
    expect(status).toBe(404);
  }
  const tooMany = await call<Failure>(path, { topics: names });
  expect(tooMany.body).toEqual({
    error: 'body.topics: expected at most 10000 topics, got 100000',
    status: 400,
  });
});
