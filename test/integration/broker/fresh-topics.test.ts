import { brokerUnderTest } from '../../support/broker.js';

const { kafka, call } = brokerUnderTest();

/** So many that Kafka names their leaders before it has opened all their logs. */
const PARTITIONS = 100;
const indexes = Array.from({ length: PARTITIONS }, (_, i) => i);

test('records for all partitions of a topic that was just made are written, and in order', async () => {
  const topic = await kafka.topic('written', PARTITIONS);
  const rounds = [0, 1, 2].map((round) => indexes.map((partition) => ({ partition, value: `${round}` })));
  const replies = await Promise.all(rounds.map((records) => call(`/produce/${topic}`, records)));
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200]);
  for (const [round, { body }] of replies.entries())
    expect(body.map(({ offset }) => offset)).toEqual(indexes.map(() => round));
});

test('a partition of a topic that was just made can be fetched and consumed from', async () => {
  const topic = await kafka.topic('read', PARTITIONS);
  const last = PARTITIONS - 1;
  const fetched = await call('/fetch', { topic, partition: last, offset: 0, timeout: 30_000 });
  expect(fetched).toMatchObject({ status: 200, body: [] });
});
