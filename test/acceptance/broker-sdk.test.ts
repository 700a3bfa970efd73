import { Kafka } from '@upstash/kafka';
import { type KafkaNamespace, kafkaNamespace } from '../support/broker/kafka.js';
import { eventually } from '../support/eventually.js';
import { type SpawnedGateway, spawnGateway } from '../support/spawned-gateway.js';
import { TOKENS } from '../support/tokens.js';

let namespace: KafkaNamespace;
let gateway: SpawnedGateway;
let kafka: Kafka;

beforeAll(async () => {
  namespace = await kafkaNamespace();
  gateway = await spawnGateway({ broker: {} });
  kafka = new Kafka({ url: `${gateway.url}/broker/`, username: TOKENS.username, password: TOKENS.password });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});

afterAll(async () => {
  expect(await gateway.stop()).toBe(0);
  await namespace.dispose();
});

test('produce and produceMany', async () => {
  const topic = await namespace.topic('produce', 2);
  const timestamp = Date.now() - 60_000;
  const producer = kafka.producer();
  const written = await producer.produce(
    topic,
    { any: ['json', 1] },
    {
      partition: 1,
      timestamp,
      key: 'k',
      headers: [{ key: 'h', value: 'v' }],
    },
  );
  expect(written).toMatchObject({ topic, partition: 1, offset: 0, timestamp });
  const many = await producer.produceMany([
    { topic, value: 'one', partition: 1 },
    { topic, value: 'two', partition: 0 },
  ]);
  expect(many.map(({ partition, offset }) => [partition, offset])).toEqual([
    [1, 1],
    [0, 0],
  ]);
  const read = await kafka.consumer().fetch({ topic, partition: 1, offset: 0, timeout: 2_000 });
  expect(read).toEqual([
    {
      topic,
      partition: 1,
      offset: 0,
      timestamp,
      key: 'k',
      value: '{"any":["json",1]}',
      headers: [{ key: 'h', value: 'v' }],
    },
    expect.objectContaining({ offset: 1, key: '', value: 'one', headers: [] }),
  ]);
});

test('fetch of a set, in parallel and in one request', async () => {
  const topic = await namespace.topic('fetch', 3);
  await kafka
    .producer()
    .produceMany([0, 1, 2].map((partition) => ({ topic, partition, value: `p${partition}` })));
  const request = {
    topic,
    partition: 0,
    offset: 0,
    topicPartitionOffsets: [1, 2].map((partition) => ({ topic, partition, offset: 0 })),
    timeout: 2_000,
  };
  const consumer = kafka.consumer();
  expect((await consumer.fetch(request)).map(({ value }) => value)).toEqual(['p1', 'p2', 'p0']);
  const together = await consumer.fetch(request, { parallel: false });
  expect(together.map(({ value }) => value)).toEqual(['p1', 'p2', 'p0']);
});

test('consume with automatic commits, and again after the instance was removed', async () => {
  const topic = await namespace.topic('auto');
  const consumerGroupId = namespace.name('auto');
  const consumer = kafka.consumer();
  const consume = () =>
    consumer.consume({
      consumerGroupId,
      instanceId: 'one',
      topics: [topic],
      autoCommit: true,
      autoCommitInterval: 1_000,
      autoOffsetReset: 'earliest',
      timeout: 30_000,
    });
  await kafka.producer().produce(topic, 'first');
  expect((await consume()).map(({ value }) => value)).toEqual(['first']);
  expect(await kafka.admin().consumers()).toContainEqual({
    name: consumerGroupId,
    instances: [{ name: 'one', topics: [{ topic, partitions: [0] }] }],
  });
  await kafka.admin().removeConsumerInstance(consumerGroupId, 'one');
  await kafka.producer().produce(topic, 'second');
  expect((await consume()).map(({ value }) => value)).toEqual(['second']);
});

test('consume and commit by hand', async () => {
  const [a, b] = await Promise.all([namespace.topic('hand-a'), namespace.topic('hand-b')]);
  const group = { consumerGroupId: namespace.name('hand'), instanceId: 'one' };
  const consumer = kafka.consumer();
  await kafka.producer().produceMany([a, b].map((topic) => ({ topic, value: `in ${topic}` })));
  const values: string[] = [];
  await eventually(async () => {
    const records = await consumer.consume({
      ...group,
      topics: [a, b],
      autoCommit: false,
      autoOffsetReset: 'earliest',
      timeout: 3_000,
    });
    values.push(...records.map(({ value }) => value));
    expect(values.sort()).toEqual([`in ${a}`, `in ${b}`]);
  });
  expect(await namespace.committed(group.consumerGroupId, a)).toEqual([-1]);
  await consumer.commit({ ...group, offset: { topic: a, partition: 0, offset: 1 } });
  expect(await namespace.committed(group.consumerGroupId, a)).toEqual([1]);
  expect(await namespace.committed(group.consumerGroupId, b)).toEqual([-1]);
  await consumer.commit(group);
  expect(await namespace.committed(group.consumerGroupId, b)).toEqual([1]);
});

test('topics', async () => {
  const topic = await namespace.topic('listed', 3);
  expect((await kafka.admin().topics())[topic]).toBe(3);
});

test('committed offsets and offsets at a time', async () => {
  const topic = await namespace.topic('offsets', 2);
  const group = { consumerGroupId: namespace.name('offsets'), instanceId: 'one' };
  const timestamp = Date.now() - 60_000;
  await kafka.producer().produceMany([
    { topic, value: 'old', partition: 0, timestamp },
    { topic, value: 'new', partition: 0 },
  ]);
  const partitions = [0, 1].map((partition) => ({ topic, partition }));
  const offsetsAt = (at: number | 'earliest' | 'latest') =>
    kafka.admin().topicPartitionOffsets({ timestamp: at, topicPartitions: partitions });
  const listed = (offsets: { offset: number }[]) => offsets.map(({ offset }) => offset);
  expect(listed(await offsetsAt('earliest'))).toEqual([0, 0]);
  expect(listed(await offsetsAt('latest'))).toEqual([2, 0]);
  expect(listed(await offsetsAt(timestamp + 1))).toEqual([1, 0]);
  const request = { ...group, topicPartitions: partitions };
  expect(listed(await kafka.consumer().committed(request))).toEqual([-1, -1]);
  await kafka.consumer().consume({ ...group, topics: [topic], autoOffsetReset: 'earliest', timeout: 30_000 });
  await kafka.consumer().commit({ ...group, offset: [{ topic, partition: 0, offset: 1 }] });
  expect(await kafka.admin().committedOffsets(request)).toEqual([
    { topic, partition: 0, offset: 1 },
    { topic, partition: 1, offset: -1 },
  ]);
});

test('credentials in the address of a webhook stand in no log', async () => {
  const topic = await namespace.topic('webhook');
  const loud = await spawnGateway({ log: { level: 'trace' }, broker: {} });
  const post = (name: string, pass: string) =>
    fetch(`${loud.url}/broker/webhook?topic=${name}&user=${TOKENS.username}&pass=${pass}`, {
      method: 'POST',
      body: 'x',
    });
  expect((await post(topic, TOKENS.password)).status).toBe(200);
  expect((await post(namespace.name('none'), TOKENS.password)).status).toBe(404);
  expect((await post(topic, 'not-the-password-0123456789')).status).toBe(401);
  expect(await loud.stop()).toBe(0);
  expect(loud.lines.length).toBeGreaterThan(0);
  for (const secret of [TOKENS.password, 'not-the-password-0123456789'])
    expect(loud.lines.filter((line) => line.includes(secret))).toEqual([]);
});
