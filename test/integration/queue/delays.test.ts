import { connect } from 'amqplib';
import { describeTopology } from '../../../src/services/queue/rabbitmq/topology.js';
import { backend } from '../../support/backend.js';
import { backendAddress } from '../../support/environment.js';
import { eventually, HANGS_MS } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import {
  messageIdOf,
  publish,
  publishUntilTaken,
  queueNamespace,
  type Receiver,
  startReceiver,
} from '../../support/queue/queue.js';

const GRACE_MS = 20_000;
const namespace = queueNamespace({ sweepGraceMs: GRACE_MS });
let gateway: RunningGateway;
let receiver: Receiver;

const isReady = async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
const ready = () => eventually(isReady);

beforeAll(async () => {
  gateway = await startGateway({ queue: namespace.config });
  receiver = await startReceiver();
  await ready();
});
afterAll(async () => {
  await gateway?.stop();
  await receiver?.stop();
  await namespace.remove();
});

interface Timed {
  readonly id: string;
  /** `performance.now()` before which it must not, and after which it should, arrive. */
  readonly earliest: number;
  readonly due: number;
}

let count = 0;

/** Publishes messages with delays spread evenly over `seconds`, in no order, some at a time. */
async function publishSpread(messages: number, seconds: number): Promise<Timed[]> {
  const timed: Timed[] = [];
  const one = async (index: number) => {
    const delayMs = 200 + Math.floor((((index * 7_919) % messages) / messages) * seconds * 1_000);
    const path = `/${++count}`;
    const earliest = performance.now() + delayMs;
    const { status, body } = await publishUntilTaken(gateway, receiver.url + path, {
      'upstash-delay': `${delayMs}ms`,
    });
    expect(status).toBe(200);
    timed.push({ id: body.messageId as string, earliest, due: performance.now() + delayMs });
  };
  for (let from = 0; from < messages; from += 20)
    await Promise.all(Array.from({ length: 20 }, (_, i) => one(from + i)));
  return timed;
}

interface Arrival extends Timed {
  readonly at: number;
}

/** In the order in which they arrived; every one arrived once and none early. */
async function arrivalsOf(timed: readonly Timed[]): Promise<Arrival[]> {
  const ids = new Set(timed.map(({ id }) => id));
  const arrived = () => receiver.received.filter((one) => ids.has(messageIdOf(one)));
  const lastDue = Math.max(...timed.map(({ due }) => due));
  const timeoutMs = Math.max(0, lastDue - performance.now()) + HANGS_MS;
  await eventually(() => expect(arrived().length).toBeGreaterThanOrEqual(timed.length), timeoutMs);
  const at = new Map(arrived().map((one) => [messageIdOf(one), one.at]));
  expect(at.size).toBe(timed.length);
  expect(arrived()).toHaveLength(timed.length);
  for (const { id, earliest } of timed) expect(at.get(id)).toBeGreaterThan(earliest);
  return timed.map((one) => ({ ...one, at: at.get(one.id) as number })).sort((a, b) => a.at - b.at);
}

/**
 * Whoever waited behind another or for the sweeper would have been overtaken by those due well after it. A busy machine
 * makes all of them late alike, and only some: the first tenth tells of those that had not to wait for it.
 * @param share of them that nobody overtook
 */
function expectOnTime(arrivals: readonly Arrival[], share = 0.99): void {
  const late = arrivals.map(({ at, due }) => at - due).sort((a, b) => a - b);
  expect(late[Math.floor(late.length * 0.1)]).toBeLessThan(1_000);
  let latestDue = Number.NEGATIVE_INFINITY;
  const overtaken = arrivals.map(({ due }) => {
    latestDue = Math.max(latestDue, due);
    return latestDue - due;
  });
  overtaken.sort((a, b) => a - b);
  expect(overtaken[Math.floor(overtaken.length * 0.5)]).toBeLessThan(2_500);
  expect(overtaken[Math.floor(overtaken.length * share)]).toBeLessThan(5_000);
}

it('delivers messages at their time, in whatever order they were published, none early', async () => {
  const timed = await publishSpread(400, 8);
  expectOnTime(await arrivalsOf(timed));
});

it('loses no delayed message when RabbitMQ is killed while some go from level to level; those due later are on time', async () => {
  // until RabbitMQ is back before most are due, however long it takes for that
  for (let seconds = 30; (await dueAfterKill(seconds)) <= 20; seconds *= 4) expect(seconds).toBe(30);
}, 600_000);

/** @returns how many of the messages, spread over so many seconds, were due later than RabbitMQ was back */
async function dueAfterKill(seconds: number): Promise<number> {
  const rabbitmq = backend('rabbitmq');
  const timed = await publishSpread(400, seconds);
  const ids = new Set(timed.map(({ id }) => id));
  // so many are due within a tenth of the time
  await eventually(() =>
    expect(receiver.received.filter((one) => ids.has(messageIdOf(one))).length).toBeGreaterThan(40),
  );
  await rabbitmq.kill();
  try {
    await rabbitmq.start();
    await ready();
  } finally {
    await rabbitmq.start();
  }
  const back = performance.now();
  const [away, later] = [
    timed.filter(({ due }) => due <= back + 1_000),
    timed.filter(({ due }) => due > back + 1_000),
  ];
  // A ticket that was between two levels as RabbitMQ died is lost; the sweeper gives its message another.
  if (later.length > 20) expectOnTime(await arrivalsOf(later), 0.9);
  await arrivalsOf(away);
  return later.length;
}

it('after a new connection, gives messages whose ticket was lost another one soon after their time', async () => {
  const { names } = describeTopology(namespace.prefix);
  const connection = await connect(backendAddress('PORTICO_RABBITMQ_URL'));
  const channel = await connection.createChannel();
  const path = `/${++count}`;
  const delayMs = GRACE_MS + 1_000;
  const earliest = performance.now() + delayMs;
  const { status, body } = await publish(gateway, receiver.url + path, { 'upstash-delay': `${delayMs}ms` });
  expect(status).toBe(200);
  // 21 s are 168 units of 125 ms: five of the second level, then 8
  expect((await channel.purgeQueue(names.wait(1, 5))).messageCount).toBe(1);
  // the gateway notices, and connects anew to declare it
  await channel.deleteQueue(names.unrouted);
  await connection.close();
  const [arrival] = await arrivalsOf([{ id: body.messageId as string, earliest, due: earliest }]);
  const late = (arrival as Arrival).at - earliest;
  expect(late).toBeGreaterThan(3_000);
  expect(late).toBeLessThan(GRACE_MS);
});
