import {
  type BrokerClient,
  brokerClient,
  type KafkaNamespace,
  kafkaNamespace,
} from '../../support/broker/kafka.js';
import { PeerGateways } from '../../support/broker/peers.js';
import { eventually } from '../../support/eventually.js';
import type { SpawnedGateway } from '../../support/spawned-gateway.js';

// nothing is committed between two requests but at a handover
const HEADERS = { 'Kafka-Auto-Offset-Reset': 'earliest', 'Kafka-Auto-Commit-Interval': '3600000' };
const INSTANCES = ['a', 'b', 'c', 'd'];

let kafka: KafkaNamespace;
let gateways: PeerGateways;

beforeAll(async () => {
  kafka = await kafkaNamespace();
});

afterAll(async () => {
  await kafka.dispose();
});

beforeEach(async () => {
  gateways = await PeerGateways.of(2);
});

afterEach(async () => {
  await gateways.stop();
});

const callOf = ({ url }: SpawnedGateway) => brokerClient(url);
const found = ({ lines }: SpawnedGateway) => lines.filter((line) => line.includes('peer found')).length;
const created = ({ lines }: SpawnedGateway, group: string) =>
  lines.filter((line) => line.includes('consumer instance created') && line.includes(group)).length;

const consume = (call: BrokerClient, group: string, instance: string, topic: string, timeout: number) =>
  call(`/consume/${group}/${instance}/${topic}?timeout=${timeout}`, undefined, { headers: HEADERS });

/** Produces and consumes, each instance in turn at all of `urls`, until it is stopped. */
class Load {
  readonly urls = new Set<string>();
  readonly written: string[] = [];
  readonly seen: string[] = [];
  readonly refused: string[] = [];
  /** Records of the largest reply. */
  private largest = 0;
  private isWritten = false;
  private isOver = false;
  private readonly work: Promise<unknown>;

  constructor(
    first: SpawnedGateway,
    private readonly group: string,
    private readonly topic: string,
  ) {
    this.urls.add(first.url);
    this.work = Promise.all([this.produce(first), ...INSTANCES.map((instance) => this.consume(instance))]);
  }

  /** Resolves when everything that was written has been consumed. */
  async stop(): Promise<void> {
    this.isWritten = true;
    await eventually(() => {
      const seen = new Set(this.seen);
      expect(this.written.filter((value) => !seen.has(value))).toEqual([]);
    });
    this.isOver = true;
    await this.work;
  }

  /** Nothing failed, and little came twice: a reply of each instance that was on its way during a rebalance may. */
  expectSmooth(): void {
    expect(this.refused).toEqual([]);
    expect(this.written.length).toBeGreaterThan(200);
    expect(this.seen.length - this.written.length).toBeLessThanOrEqual(INSTANCES.length * this.largest);
  }

  private async produce(gateway: SpawnedGateway): Promise<void> {
    const call = callOf(gateway);
    while (!this.isWritten) {
      const value = `v${this.written.length}`;
      const { status } = await call(`/produce/${this.topic}`, { value });
      if (status === 200) this.written.push(value);
      else this.refused.push(`produce ${status}`);
    }
  }

  private async consume(instance: string): Promise<void> {
    for (let i = 0; !this.isOver; i++) {
      const urls = [...this.urls];
      const call = brokerClient(urls[i % urls.length] as string);
      const { status, body } = await consume(call, this.group, instance, this.topic, 200);
      if (status === 200) {
        this.seen.push(...body.map(({ value }) => value));
        this.largest = Math.max(this.largest, body.length);
      } else this.refused.push(`consume ${status} ${JSON.stringify(body)}`);
    }
  }
}

const enough = (load: Load, more: number) => {
  const count = load.written.length + more;
  return eventually(() => expect(load.written.length).toBeGreaterThan(count));
};

test('a gateway that stops hands its instances on: no request fails, and they go on where it was', async () => {
  const topic = await kafka.topic('stop', 8);
  const group = kafka.name('stop');
  const [stays, stops] = [await gateways.start(0), await gateways.start(1)];
  await eventually(() => expect(found(stays) + found(stops)).toBe(2));
  const load = new Load(stays, group, topic);
  await eventually(() => expect(created(stays, group) + created(stops, group)).toBe(INSTANCES.length));
  await enough(load, 200);
  expect(await stops.stop()).toBe(0);
  await enough(load, 200);
  await load.stop();
  load.expectSmooth();
  expect(created(stays, group)).toBe(INSTANCES.length);
});

test('a gateway that comes takes instances over: no request fails, and they go on where the other was', async () => {
  const topic = await kafka.topic('come', 8);
  const group = kafka.name('come');
  const first = await gateways.start(0);
  const load = new Load(first, group, topic);
  await enough(load, 200);
  const second = await gateways.start(1);
  load.urls.add(second.url);
  await enough(load, 200);
  await load.stop();
  load.expectSmooth();
});

test('a gateway that hangs is given up by those who wait for it', async () => {
  const topic = await kafka.topic('hang', 4);
  const group = kafka.name('hang');
  const [stays, hangs] = [await gateways.start(0), await gateways.start(1)];
  await eventually(() => expect(found(stays) + found(hangs)).toBe(2));
  const call = callOf(stays);
  let instance = '';
  for (let i = 0; created(hangs, group) === 0 && i < 12; i++) {
    if (instance !== '') await call(`/delete-consumer/${group}/${instance}`, undefined, { method: 'DELETE' });
    instance = `i${i}`;
    await consume(call, group, instance, topic, 2_000);
  }
  expect(created(hangs, group)).toBe(1);
  const waiting = consume(call, group, instance, topic, 30_000);
  hangs.process.kill('SIGSTOP');
  try {
    await call(`/produce/${topic}`, { value: 'x' });
    const { status, body, ms } = await waiting;
    expect({ status, values: body.map(({ value }) => value) }).toEqual({ status: 200, values: ['x'] });
    expect(ms).toBeLessThan(25_000);
  } finally {
    hangs.process.kill('SIGCONT');
  }
});
