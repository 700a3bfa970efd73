import { brokerUnderTest } from '../../support/broker/broker.js';
import { brokerClient } from '../../support/broker/kafka.js';
import { eventually } from '../../support/eventually.js';
import { spawnGateway } from '../../support/spawned-gateway.js';

// what a group has committed: up to the end of a log, and from its first moment on
const { kafka, call } = brokerUnderTest();
const AUTOMATIC = { 'Kafka-Auto-Offset-Reset': 'earliest', 'Kafka-Auto-Commit-Interval': '10' };
const MANUAL = { 'Kafka-Auto-Offset-Reset': 'earliest', 'Kafka-Enable-Auto-Commit': 'false' };

const endOf = async (topic: string) => {
  const { body } = await call<{ offset: number }[]>('/offsets/latest', { topic, partition: 0 });
  return body[0]?.offset;
};

test.each([
  ['automatic commits', AUTOMATIC],
  ['commits of what was delivered', MANUAL],
])('%s reach the end of a topic with transactions', async (name, headers) => {
  const topic = await kafka.topic(`transactions-${name.length}`);
  const group = kafka.name(`transactions-${name.length}`);
  const consume = (timeout: number) =>
    call(`/consume/${group}/i/${topic}?timeout=${timeout}`, undefined, { headers });
  const isAtEnd = () =>
    eventually(async () => {
      await consume(50);
      if (headers === MANUAL) await call(`/commit/${group}/i`, []);
      expect(await kafka.committed(group, topic)).toEqual([await endOf(topic)]);
    });
  await kafka.transaction(topic, ['a', 'b'], 'commit');
  expect((await consume(30_000)).body.map(({ value }) => value)).toEqual(['a', 'b']);
  await isAtEnd();
  // nothing but what is not for readers
  await kafka.transaction(topic, ['no', 'body'], 'abort');
  await isAtEnd();
  await kafka.transaction(topic, ['c'], 'commit');
  await kafka.transaction(topic, ['nobody'], 'abort');
  expect((await consume(30_000)).body.map(({ value }) => value)).toEqual(['c']);
  await isAtEnd();
  expect(await endOf(topic)).toBe(10);
});

test.each([
  ['automatic', 'true'],
  ['own', 'false'],
])(
  'a new group that begins at latest has its start committed when it has joined: %s commits',
  async (name, auto) => {
    const topic = await kafka.topic(`start-${name}`);
    const group = kafka.name(`start-${name}`);
    await call(`/produce/${topic}`, { value: 'before' });
    const headers = { 'Kafka-Enable-Auto-Commit': auto, 'Kafka-Session-Timeout-Ms': '6000' };
    const consume = (client: typeof call, timeout: number) =>
      client(`/consume/${group}/i/${topic}?timeout=${timeout}`, undefined, { headers });
    const gateway = await spawnGateway({ broker: {} });
    try {
      await eventually(async () => {
        const { headers: reply } = await consume(brokerClient(gateway.url), 500);
        expect(reply.get('broker-consumer-state')).toBe('joined');
      });
      await gateway.kill();
    } finally {
      await gateway.stop();
    }
    expect(await kafka.committed(group, topic)).toEqual([1]);
    await call(`/produce/${topic}`, { value: 'after' });
    await eventually(async () => {
      expect((await consume(call, 1_000)).body.map(({ value }) => value)).toEqual(['after']);
    });
  },
);
