import { brokerUnderTest } from '../../support/broker/broker.js';

const { kafka, call } = brokerUnderTest();

/** So many that Kafka names their leaders before it has opened all their logs. */
const PARTITIONS = 100;
const indexes = Array.from({ length: PARTITIONS }, (_, i) => i);

test('records for all partitions of a topic that was just made are written once, and in order', async () => {
  const topic = await kafka.topic('written', PARTITIONS);
  // Two records a partition: within a request their order is kept. Requests that are sent at once have none
  // among themselves, since each may come by a socket of its own.
  const records = indexes.flatMap((partition) => ['first', 'second'].map((value) => ({ partition, value })));
  const replies = await Promise.all([0, 1, 2].map(() => call(`/produce/${topic}`, records)));
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200]);
  for (const partition of indexes) {
    const pairs = replies.map(({ body }) =>
      body.slice(2 * partition, 2 * partition + 2).map(({ offset }) => offset),
    );
    for (const [first] of pairs) expect(pairs).toContainEqual([first, Number(first) + 1]);
    expect(pairs.flat().sort()).toEqual([0, 1, 2, 3, 4, 5]);
  }
});

test('a partition of a topic that was just made can be fetched from, and gives what comes meanwhile', async () => {
  const topic = await kafka.topic('read', PARTITIONS);
  const last = PARTITIONS - 1;
  const fetching = call('/fetch', { topic, partition: last, offset: 0, timeout: 30_000 });
  await call(`/produce/${topic}`, { partition: last, value: 'came' });
  expect(await fetching).toMatchObject({ status: 200, body: [{ partition: last, value: 'came' }] });
});
