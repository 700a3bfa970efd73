import {
  type BrokerRecord,
  brokerClient,
  type KafkaNamespace,
  kafkaNamespace,
} from '../../support/broker/kafka.js';
import { PeerGateways } from '../../support/broker/peers.js';
import { eventually } from '../../support/eventually.js';
import type { SpawnedGateway } from '../../support/spawned-gateway.js';

type Groups = { name: string; instances: { name: string; topics: { partitions: number[] }[] }[] }[];

/** For so long Kafka would keep a dead gateway's partitions, in ms. */
const SESSION_MS = 60_000;
const EARLIEST = {
  'Kafka-Auto-Offset-Reset': 'earliest',
  'Kafka-Auto-Commit-Interval': '200',
  'Kafka-Session-Timeout-Ms': String(SESSION_MS),
};
/** So many that one in 20,000 runs has all of them in one gateway. */
const INSTANCES = [...'abcdefghij'];

let kafka: KafkaNamespace;
let peers: PeerGateways;
let gateways: SpawnedGateway[];
const calls = () => gateways.map(({ url }) => brokerClient(url));

beforeAll(async () => {
  kafka = await kafkaNamespace();
  peers = await PeerGateways.of(3);
  await Promise.all(peers.places.map((_, i) => peers.start(i)));
  gateways = peers.running;
  await eventually(() => {
    for (const { lines } of gateways)
      expect(lines.filter((line) => line.includes('peer found'))).toHaveLength(2);
  });
});

afterAll(async () => {
  await peers.stop();
  await kafka.dispose();
});

const owned = (gateway: SpawnedGateway, group: string) =>
  gateway.lines.filter((line) => line.includes('consumer instance created') && line.includes(group)).length;

test('an instance lives in one gateway, whichever is asked', async () => {
  const topic = await kafka.topic('any', INSTANCES.length);
  const group = kafka.name('any');
  const [first, second, third] = calls();
  const records = Array.from({ length: 60 }, (_, i) => ({ value: `v${i}`, partition: i % INSTANCES.length }));
  expect((await first?.(`/produce/${topic}`, records))?.status).toBe(200);
  // each request of an instance goes to another gateway
  const seen = new Set<string>();
  for (let round = 0; seen.size < 60 && round < 30; round++) {
    const answers = await Promise.all(
      INSTANCES.map((instance, i) =>
        (calls()[(i + round) % 3] as typeof first)?.(
          `/consume/${group}/${instance}/${topic}?timeout=1000`,
          undefined,
          { headers: EARLIEST },
        ),
      ),
    );
    for (const answer of answers) {
      expect(answer?.status).toBe(200);
      for (const { value } of (answer?.body ?? []) as BrokerRecord[]) seen.add(value);
    }
  }
  // where they do not all join in time for one rebalance, the next may give a record to another once more
  expect([...seen].sort()).toEqual(records.map(({ value }) => value).sort());
  expect(await kafka.members(group)).toBe(INSTANCES.length);
  for (const call of calls()) {
    // the last rebalance may still be under way
    const mine = await eventually(async () => {
      const { body } = await call<Groups>('/consumers');
      const instances = body.find(({ name }) => name === group)?.instances ?? [];
      const partitions = instances.flatMap(({ topics }) => topics.flatMap((topic) => topic.partitions));
      expect(partitions.sort()).toEqual([...INSTANCES.keys()]);
      return instances;
    });
    expect(mine.map(({ name }) => name).sort()).toEqual(INSTANCES);
  }
  // what was delivered before the last rebalance may be somebody else's now, and its commit a 409: so commit something newer
  expect((await first?.(`/produce/${topic}`, records.slice(0, INSTANCES.length)))?.status).toBe(200);
  await eventually(async () => {
    const answer = await second?.(`/consume/${group}/a/${topic}?timeout=1000`, undefined, {
      headers: EARLIEST,
    });
    expect(answer?.body).not.toEqual([]);
  });
  expect((await second?.(`/commit/${group}/a`, undefined, { method: 'POST' }))?.status).toBe(200);
  expect((await third?.(`/commit/${group}/nobody`, undefined, { method: 'POST' }))?.status).toBe(404);
  for (const [i, instance] of INSTANCES.entries())
    expect(
      (await calls()[i % 3]?.(`/delete-consumer/${group}/${instance}`, undefined, { method: 'POST' }))
        ?.status,
    ).toBe(200);
  expect(await kafka.members(group)).toBe(0);
  expect(gateways.filter((gateway) => owned(gateway, group) > 0).length).toBeGreaterThan(1);
});

test('a client that leaves a forwarded wait takes nothing with it, and wakes the owner', async () => {
  const topic = await kafka.topic('leave');
  const group = kafka.name('leave');
  for (const call of calls()) {
    const consume = (timeout: number, signal?: AbortSignal) =>
      call(`/consume/${group}/i/${topic}?timeout=${timeout}`, undefined, {
        headers: EARLIEST,
        ...(signal === undefined ? {} : { signal }),
      });
    await consume(1_000);
    const left = new AbortController();
    const waiting = consume(20_000, left.signal);
    left.abort();
    await expect(waiting).rejects.toThrow();
    const value = Math.random().toString();
    await call(`/produce/${topic}`, { value });
    const next = await consume(30_000);
    expect(next.body.map((record) => record.value)).toEqual([value]);
    expect(next.ms).toBeLessThan(15_000);
  }
});

test('the owner is killed in the middle of a consume: the next request finds the instance elsewhere, and nothing is lost', async () => {
  const topic = await kafka.topic('kill', 12);
  const group = kafka.name('kill');
  const seen = new Set<string>();
  const acknowledged: string[] = [];
  const survivors = () => gateways.slice(1).map(({ url }) => brokerClient(url));
  const consume = (call: ReturnType<typeof brokerClient>, instance: string, timeout: number) =>
    call(`/consume/${group}/${instance}/${topic}?timeout=${timeout}`, undefined, { headers: EARLIEST });
  const produce = async (from: number) => {
    const records = Array.from({ length: 30 }, (_, i) => ({ value: `v${from + i}`, partition: i % 12 }));
    const [call] = survivors();
    if ((await call?.(`/produce/${topic}`, records))?.status === 200)
      acknowledged.push(...records.map(({ value }) => value));
  };
  await produce(0);
  // at least three, one of which lives in the gateway that dies
  const instances: string[] = [];
  while (
    instances.length < 3 ||
    (owned(gateways[0] as SpawnedGateway, group) === 0 && instances.length < 12)
  ) {
    instances.push(`i${instances.length}`);
    const { body } = await consume(
      brokerClient((gateways[1] as SpawnedGateway).url),
      instances.at(-1) as string,
      3_000,
    );
    for (const { value } of body) seen.add(value);
  }
  expect(owned(gateways[0] as SpawnedGateway, group)).toBeGreaterThan(0);
  // the first gateway dies while each instance waits for records, asked by a survivor or by itself
  const waits = instances.map((instance, i) =>
    consume(brokerClient((gateways[i % 2] as SpawnedGateway).url), instance, 20_000).then(
      ({ status, body }) => {
        if (status === 200) for (const { value } of body) seen.add(value);
      },
      () => {},
    ),
  );
  await (gateways[0] as SpawnedGateway).kill();
  const killedAt = performance.now();
  await produce(30);
  for (const instance of instances) {
    await eventually(async () => {
      const [call] = survivors();
      const answer = await consume(call as ReturnType<typeof brokerClient>, instance, 500);
      expect(answer.status).toBe(200);
      expect(answer.headers.get('broker-consumer-state')).toBe('joined');
      for (const { value } of answer.body) seen.add(value);
    });
  }
  expect(performance.now() - killedAt).toBeLessThan(SESSION_MS / 2);
  await eventually(async () => {
    for (const instance of instances)
      for (const call of survivors())
        for (const { value } of (await consume(call, instance, 200)).body) seen.add(value);
    expect(acknowledged.filter((value) => !seen.has(value))).toEqual([]);
  });
  await Promise.all(waits);
  // it comes back and takes part again
  await peers.start(0);
  await eventually(async () => {
    for (const call of calls())
      for (const instance of instances) expect((await consume(call, instance, 100)).status).toBe(200);
    expect(await kafka.members(group)).toBe(instances.length);
  });
});

test('whoever does not know the secret is refused', async () => {
  const reply = await fetch(`http://${peers.places[1]}/ping`, { headers: { authorization: 'Bearer wrong' } });
  expect(reply.status).toBe(401);
  const none = await fetch(`http://${peers.places[1]}/`, {
    method: 'POST',
    body: '{"cluster":"default","hop":"machine","request":{"operation":"list"}}\n',
  });
  expect(none.status).toBe(401);
});
