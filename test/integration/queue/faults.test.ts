import { connect } from 'amqplib';
import { describeTopology } from '../../../src/services/queue/rabbitmq/topology.js';
import { backend } from '../../support/backend.js';
import { backendAddress } from '../../support/environment.js';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import {
  type Published,
  publish,
  publishUntilTaken,
  queueNamespace,
  type Receiver,
  startReceiver,
} from '../../support/queue/queue.js';

const namespace = queueNamespace({ concurrency: 20 });
let gateway: RunningGateway;
let receiver: Receiver;
/** How long the destination takes for an answer, in ms. */
let slowness = 0;

const isReady = async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
const ready = () => eventually(isReady);

beforeAll(async () => {
  gateway = await startGateway({ queue: namespace.config });
  receiver = await startReceiver((_, response) => void setTimeout(() => response.end(), slowness));
  await ready();
});
afterAll(async () => {
  await gateway?.stop();
  await receiver?.stop();
  await namespace.remove();
});
beforeEach(() => {
  slowness = 0;
});

let round = 0;
const freshPath = () => `/${++round}`;

interface Attempted {
  readonly n: number;
  readonly reply: Published;
  readonly ms: number;
}

async function publishMany(path: string, from: number, count: number, how = publish): Promise<Attempted[]> {
  const one = async (n: number) => {
    const started = performance.now();
    const reply = await how(gateway, `${receiver.url}${path}?${n}`);
    return { n, reply, ms: performance.now() - started };
  };
  return Promise.all(Array.from({ length: count }, (_, i) => one(from + i)));
}

/** The numbers of the messages that arrived under `path`. */
const delivered = (path: string) =>
  receiver.received
    .filter(({ url }) => url.startsWith(`${path}?`))
    .map(({ url }) => Number(url.split('?')[1]));

function expectRefused(attempts: readonly Attempted[]): void {
  for (const { reply, ms } of attempts) {
    expect(reply).toMatchObject({ status: 503, body: { error: expect.any(String) } });
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(ms).toBeLessThan(PROMPT_MS);
  }
}

/** Everything accepted arrives, nothing refused does, and nothing is left open. */
async function expectSettled(path: string, attempts: readonly Attempted[]): Promise<void> {
  const accepted = attempts.filter(({ reply }) => reply.status === 200).map(({ n }) => n);
  await eventually(() => {
    const arrived = new Set(delivered(path));
    expect(accepted.filter((n) => !arrived.has(n))).toEqual([]);
  });
  await eventually(async () => {
    const [row] = await namespace.query<{ open: number }>(
      'select count(*)::int as open from $schema.messages where finished_at is null',
    );
    expect(row?.open).toBe(0);
  });
  const refused = attempts.filter(({ reply }) => reply.status !== 200).map(({ n }) => n);
  expect(delivered(path).filter((n) => refused.includes(n))).toEqual([]);
}

describe('RabbitMQ', () => {
  const rabbitmq = backend('rabbitmq');

  it('killed under load and back: publishes are refused meanwhile, what was accepted arrives', async () => {
    slowness = 50;
    const path = freshPath();
    const before = await publishMany(path, 0, 200, publishUntilTaken);
    expect(before.every(({ reply }) => reply.status === 200)).toBe(true);
    const during = publishMany(path, 200, 100);
    await rabbitmq.kill();
    try {
      await eventually(() => expect(isReady()).rejects.toThrow());
      const refused = await publishMany(path, 300, 20);
      expectRefused(refused);
      await rabbitmq.start();
      await ready();
      const after = await publishMany(path, 400, 50, publishUntilTaken);
      expect(after.every(({ reply }) => reply.status === 200)).toBe(true);
      await expectSettled(path, [...before, ...(await during), ...refused, ...after]);
    } finally {
      await rabbitmq.start();
    }
  });

  it('paused: publishes are refused within two seconds and cancelled, nobody is left waiting', async () => {
    const path = freshPath();
    await rabbitmq.pause();
    let refused: Attempted[];
    try {
      refused = await publishMany(path, 0, 20);
      expectRefused(refused);
    } finally {
      await rabbitmq.resume();
    }
    const after = await eventually(async () => {
      const attempts = await publishMany(path, 100, 5);
      expect(attempts.every(({ reply }) => reply.status === 200)).toBe(true);
      return attempts;
    });
    await expectSettled(path, [...refused, ...after]);
  });

  it('loses its work queue or a delay queue with tickets in it: they are made again, the messages arrive', async () => {
    const { names } = describeTopology(namespace.prefix);
    const connection = await connect(backendAddress('PORTICO_RABBITMQ_URL'));
    const channel = await connection.createChannel();
    slowness = 200;
    const path = freshPath();
    const waiting = await publishMany(path, 0, 100);
    const delayed = await publish(gateway, `${receiver.url}${path}?100`, { 'upstash-delay': '2s' });
    await channel.deleteQueue(names.work);
    // 2 s are 16 units of 125 ms: one digit of the lowest level; a retry may wait there, too
    const { messageCount } = await channel.deleteQueue(names.wait(0, 16));
    expect(messageCount).toBeGreaterThanOrEqual(1);
    await expectSettled(path, [...waiting, { n: 100, reply: delayed, ms: 0 }]);
    await connection.close();
    const again = freshPath();
    const attempts = await eventually(async () => {
      const reply = await publish(gateway, `${receiver.url}${again}?0`, { 'upstash-delay': '2s' });
      expect(reply.status).toBe(200);
      return [{ n: 0, reply, ms: 0 }];
    });
    await expectSettled(again, attempts);
  });
});

describe('Postgres', () => {
  const postgres = backend('postgres');

  it('killed under load and back: publishes are refused meanwhile, deliveries go on by themselves', async () => {
    slowness = 50;
    const path = freshPath();
    const before = await publishMany(path, 0, 200, publishUntilTaken);
    const during = publishMany(path, 200, 100);
    await postgres.kill();
    try {
      const refused = await publishMany(path, 300, 20);
      expectRefused(refused);
      await postgres.start();
      await ready();
      const after = await publishMany(path, 400, 50, publishUntilTaken);
      expect(after.every(({ reply }) => reply.status === 200)).toBe(true);
      await expectSettled(path, [...before, ...(await during), ...refused, ...after]);
    } finally {
      await postgres.start();
    }
  });

  it('paused: publishes are refused within two seconds, and not delivered after all when it goes on', async () => {
    const path = freshPath();
    await postgres.pause();
    let refused: Attempted[];
    try {
      refused = await publishMany(path, 0, 30);
      expectRefused(refused);
    } finally {
      await postgres.resume();
    }
    await ready();
    const after = await publishMany(path, 100, 5, publishUntilTaken);
    expect(after.every(({ reply }) => reply.status === 200)).toBe(true);
    await expectSettled(path, [...refused, ...after]);
  });
});
