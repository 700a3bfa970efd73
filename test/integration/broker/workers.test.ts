import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brokerClient, type KafkaNamespace, kafkaNamespace } from '../../support/broker/kafka.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';

const COUNT = 3;

let kafka: KafkaNamespace;
let folder: string;
let workers: RunningGateway[];

const start = (index: number) =>
  startGateway({ broker: {} }, {}, undefined, {
    worker: { machine: 'm', index, count: COUNT, folder, secret: 'of-the-workers' },
  });

beforeAll(async () => {
  kafka = await kafkaNamespace();
  folder = await mkdtemp(join(tmpdir(), 'portico-test-workers-'));
  workers = await Promise.all(Array.from({ length: COUNT }, (_, index) => start(index)));
});

afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  await rm(folder, { recursive: true, force: true });
  await kafka.dispose();
});

test('the workers of one machine share their instances over Unix sockets, also when one is replaced', async () => {
  const topic = await kafka.topic('workers', 8);
  const group = kafka.name('workers');
  const instances = ['a', 'b', 'c', 'd'];
  const seen: string[] = [];
  const consumeAll = async (timeout: number) => {
    for (const instance of instances) {
      for (const { url } of workers) {
        const answer = await brokerClient(url)(
          `/consume/${group}/${instance}/${topic}?timeout=${timeout}`,
          undefined,
          {
            headers: { 'Kafka-Auto-Offset-Reset': 'earliest' },
          },
        );
        expect(answer.status).toBe(200);
        seen.push(...answer.body.map(({ value }) => value));
      }
    }
  };
  await eventually(async () => {
    await consumeAll(100);
    expect(await kafka.settledMembers(group)).toBe(instances.length);
  });
  const produce = (from: number) =>
    brokerClient((workers[0] as RunningGateway).url)(
      `/produce/${topic}`,
      Array.from({ length: 30 }, (_, i) => ({ value: `v${from + i}`, partition: i % 3 })),
    );
  await produce(0);
  await eventually(async () => {
    await consumeAll(100);
    expect(new Set(seen).size).toBe(30);
  });
  expect(seen).toHaveLength(30);
  await (workers[1] as RunningGateway).stop();
  workers[1] = await start(1);
  await produce(30);
  await eventually(async () => {
    await consumeAll(100);
    expect(new Set(seen).size).toBe(60);
    expect(await kafka.settledMembers(group)).toBe(instances.length);
  });
});
