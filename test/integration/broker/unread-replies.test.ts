import {
  type BrokerClient,
  brokerClient,
  type KafkaNamespace,
  kafkaNamespace,
} from '../../support/broker/kafka.js';
import { PeerGateways } from '../../support/broker/peers.js';
import { eventually } from '../../support/eventually.js';
import { RawClient } from '../../support/raw-client.js';
import type { SpawnedGateway } from '../../support/spawned-gateway.js';
import { TOKENS } from '../../support/tokens.js';

/** Together well below what a system takes of a reply before its client has read it. */
const RECORDS = 40;
const RECORD_BYTES = 20_000;
const EARLIEST = { 'Kafka-Auto-Offset-Reset': 'earliest', 'Kafka-Auto-Commit-Interval': '10' };
const AUTHORIZATION = `Basic ${Buffer.from(`${TOKENS.username}:${TOKENS.password}`).toString('base64')}`;

let kafka: KafkaNamespace;
let gateways: PeerGateways;
let running: SpawnedGateway[];

beforeAll(async () => {
  kafka = await kafkaNamespace();
  gateways = await PeerGateways.of(2);
  running = await Promise.all([gateways.start(0), gateways.start(1)]);
  await eventually(() => {
    for (const { lines } of running) expect(lines.join('\n')).toContain('peer found');
  });
});

afterAll(async () => {
  await gateways.stop();
  await kafka.dispose();
});

/** Where the instance is, and where it is not. */
function placesOf(group: string): [SpawnedGateway, SpawnedGateway] {
  const isOwner = ({ lines }: SpawnedGateway) =>
    lines.some((line) => line.includes('consumer instance created') && line.includes(group));
  const [first, second] = running as [SpawnedGateway, SpawnedGateway];
  return isOwner(first) ? [first, second] : [second, first];
}

/** Resolves when the instance has joined, for which there is no record yet. */
const joined = (url: string, path: string) =>
  eventually(async () => {
    const { headers } = await brokerClient(url)(`${path}?timeout=500`, undefined, { headers: EARLIEST });
    expect(headers.get('broker-consumer-state')).toBe('joined');
  });

test.each([
  ['the gateway that has the instance', 0, 'keep-alive'],
  ['another gateway', 1, 'keep-alive'],
  ['a gateway, on a connection for this request alone,', 0, 'close'],
])(
  'a client of %s that leaves while it reads a reply has taken nothing with it',
  async (_name, place, connection) => {
    const topic = await kafka.topic(`unread-${place}-${connection}`);
    const group = kafka.name(`unread-${place}-${connection}`);
    const path = `/consume/${group}/i/${topic}`;
    const [any] = running as [SpawnedGateway];
    await joined(any.url, path);
    const { url } = placesOf(group)[place] as SpawnedGateway;
    const call = brokerClient(url);
    const records = Array.from({ length: RECORDS }, (_, i) => ({
      value: `${i} ${'x'.repeat(RECORD_BYTES)}`,
    }));
    expect((await call(`/produce/${topic}`, records)).status).toBe(200);

    const client = await RawClient.open(Number(new URL(url).port));
    client.write(
      `GET /broker${path}?timeout=30000 HTTP/1.1\r\nHost: x\r\nConnection: ${connection}\r\nAuthorization: ${AUTHORIZATION}\r\n\r\n`,
    );
    await client.until(/"offset":0,/);
    client.socket.resetAndDestroy();

    const seen = new Set<string>();
    await eventually(async () => {
      const { status, body } = await call(`${path}?timeout=100`);
      expect(status).toBe(200);
      for (const { value } of body) seen.add(value);
      expect(seen.size).toBe(RECORDS);
    });
    // what the one who left had not read was committed meanwhile, and is not any more
    await eventually(async () => expect(await kafka.committed(group, topic)).toEqual([RECORDS]));
    expect((await call(`${path}?timeout=100`)).body).toEqual([]);
  },
);

/** An instance that has joined, a record for it, and a client that has asked for that by bytes of its own. */
async function clientOfOneRecord(name: string, headers = '') {
  const topic = await kafka.topic(name);
  const path = `/consume/${kafka.name(name)}/i/${topic}`;
  const [{ url }] = running as [SpawnedGateway];
  const call = brokerClient(url);
  await joined(url, path);
  await call(`/produce/${topic}`, { value: 'x' });
  const client = await RawClient.open(Number(new URL(url).port));
  client.write(
    `GET /broker${path}?timeout=30000 HTTP/1.1\r\nHost: x\r\n${headers}Authorization: ${AUTHORIZATION}\r\n\r\n`,
  );
  return { client, consume: (timeout: number) => call(`${path}?timeout=${timeout}`) };
}

test('a client that has read its reply and leaves in order is not sent it again', async () => {
  const { client, consume } = await clientOfOneRecord('read');
  await client.until(/"value":"x".*\]$/);
  client.end();
  expect((await consume(1_000)).body).toEqual([]);
});

test('a connection for one request is closed when its client closes it', async () => {
  const { client, consume } = await clientOfOneRecord('close', 'Connection: close\r\n');
  // the client's socket closes its side by itself at the end of the other
  expect(await client.closed()).toMatch(/"value":"x".*\]$/);
  expect((await consume(500)).body).toEqual([]);
});

test('what nobody confirmed comes again at another gateway than the one that has the instance, too', async () => {
  const topic = await kafka.topic('redeliver');
  const group = kafka.name('redeliver');
  const path = `/consume/${group}/i/${topic}`;
  const [any] = running as [SpawnedGateway];
  await joined(any.url, path);
  const [, { url }] = placesOf(group);
  const call = brokerClient(url);
  const headers = { 'Broker-Redeliver': 'true' };
  await call(`/produce/${topic}`, { value: 'x' });
  const first = await call(`${path}?timeout=30000`, undefined, { headers });
  expect((await call(`${path}?timeout=30000`, undefined, { headers })).body).toEqual(first.body);
  const { headers: reply } = await call(`${path}?timeout=30000`, undefined, { headers });
  const acknowledge = { 'Broker-Acknowledge': reply.get('broker-delivery') as string };
  expect((await call(`${path}?timeout=100`, undefined, { headers: acknowledge })).body).toEqual([]);
  // a commit names it again, as one that is repeated does
  expect((await call(`/commit/${group}/i`, [], { headers: acknowledge })).status).toBe(200);
  expect(await kafka.committed(group, topic)).toEqual([1]);
});

test.each([
  ['committed itself', () => ({})],
  [
    'confirmed by its name',
    (reply: string) => ({ 'Broker-Acknowledge': /Broker-Delivery: (.*)\r\n/i.exec(reply)?.[1] as string }),
  ],
])('what a client has %s is not taken back when its connection breaks', async (name, headersOf) => {
  const short = name.replaceAll(' ', '-');
  const topic = await kafka.topic(short);
  const group = kafka.name(short);
  const path = `/consume/${group}/i/${topic}`;
  const [{ url }] = running as [SpawnedGateway];
  const call = brokerClient(url);
  await joined(url, path);
  await call(
    `/produce/${topic}`,
    ['0', '1', '2'].map((value) => ({ value })),
  );
  const client = await RawClient.open(Number(new URL(url).port));
  client.write(
    `GET /broker${path}?timeout=30000 HTTP/1.1\r\nHost: x\r\nAuthorization: ${AUTHORIZATION}\r\n\r\n`,
  );
  const reply = await client.until(/"value":"2".*\]$/);
  const headers = headersOf(reply);
  const isNamed = Object.keys(headers).length > 0;
  const committed = isNamed ? [] : { topic, partition: 0, offset: 2 };
  expect((await call(`/commit/${group}/i`, committed, { headers })).status).toBe(200);
  client.socket.resetAndDestroy();
  // of the rest nobody has said that it was read
  const rest = isNamed ? [] : ['2'];
  const seen: string[] = [];
  await eventually(async () => {
    const { body } = await call(`${path}?timeout=500`);
    seen.push(...body.map(({ value }) => value));
    expect(seen).toEqual(rest);
  });
  await call(`/produce/${topic}`, { value: 'next' });
  expect((await call(`${path}?timeout=30000`)).body.map(({ value }) => value)).toEqual(['next']);
});

/** Without the wait for the word from the other gateway every second commit was too early. */
const ROUNDS = 20;

test.each(['false', 'true'])(
  'a commit overtakes no reply of another gateway (redelivery: %s)',
  async (redeliver) => {
    const topic = await kafka.topic(`overtake-${redeliver}`);
    const group = kafka.name(`overtake-${redeliver}`);
    const path = `/consume/${group}/i/${topic}`;
    const [{ url: any }] = running as [SpawnedGateway];
    const headers = {
      ...EARLIEST,
      'Kafka-Enable-Auto-Commit': 'false',
      'Broker-Redeliver': redeliver,
    };
    await brokerClient(any)(`${path}?timeout=1`, undefined, { headers });
    const [owner, other] = placesOf(group).map(({ url }) => brokerClient(url)) as [
      BrokerClient,
      BrokerClient,
    ];
    for (let next = 1; next <= ROUNDS; next++) {
      await owner(`/produce/${topic}`, { value: 'x' });
      expect((await other(`${path}?timeout=30000`, undefined, { headers })).body).toHaveLength(1);
      expect((await owner(`/commit/${group}/i`, [])).status).toBe(200);
      expect(await kafka.committed(group, topic)).toEqual([next]);
    }
  },
);
