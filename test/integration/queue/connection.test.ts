import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { type AmqpProxy, startAmqpProxy } from '../../support/queue/amqp-proxy.js';
import { publish, queueNamespace, type Receiver, startReceiver } from '../../support/queue/queue.js';

const namespace = queueNamespace({ concurrency: 50, maxRequestsPerDay: 10_000 });
let proxy: AmqpProxy;
let gateway: RunningGateway;
let receiver: Receiver;
let slowness = 0;

const ready = () => eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));

beforeAll(async () => {
  proxy = await startAmqpProxy();
  gateway = await startGateway({ queue: namespace.config }, { PORTICO_RABBITMQ_URL: proxy.url });
  receiver = await startReceiver((_, response) => void setTimeout(() => response.end(), slowness));
  await ready();
});
afterAll(async () => {
  proxy?.unblock();
  await gateway?.stop();
  await proxy?.stop();
  await receiver?.stop();
  await namespace.remove();
});
beforeEach(() => {
  slowness = 0;
});

const arrivals = (path: string) =>
  receiver.received.flatMap(({ url }) => (url.startsWith(`${path}?`) ? [Number(url.split('?')[1])] : []));
const publishMany = (path: string, from: number, count: number) =>
  Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const started = performance.now();
      const reply = await publish(gateway, `${receiver.url}${path}?${from + i}`);
      return { n: from + i, reply, ms: performance.now() - started };
    }),
  );
const allSettled = () =>
  eventually(async () => {
    const open = await namespace.query('select id from $schema.messages where finished_at is null');
    expect(open).toEqual([]);
  });

/** All that was accepted arrived once, nothing that was refused did. */
async function expectOnce(path: string, attempts: Awaited<ReturnType<typeof publishMany>>): Promise<void> {
  const accepted = attempts.filter(({ reply }) => reply.status === 200).map(({ n }) => n);
  await eventually(() => expect(accepted.filter((n) => !arrivals(path).includes(n))).toEqual([]));
  await allSettled();
  expect([...arrivals(path)].sort((a, b) => a - b)).toEqual(accepted.sort((a, b) => a - b));
}

it('memory alarm: publishes are refused at once with Retry-After, nobody waits, and all goes on after it', async () => {
  const before = await publishMany('/alarm', 0, 10);
  proxy.block();
  const during = await publishMany('/alarm', 10, 10);
  for (const { reply, ms } of during) {
    expect(reply.status).toBe(503);
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(ms).toBeLessThan(PROMPT_MS);
  }
  // an answer about readiness is kept for a second
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(503));
  proxy.unblock();
  await ready();
  const after = await eventually(async () => {
    const attempts = await publishMany('/alarm', 20, 10);
    expect(attempts.every(({ reply }) => reply.status === 200)).toBe(true);
    return attempts;
  });
  await expectOnce('/alarm', [...before, ...during, ...after]);
  // those that were refused do not count for the day
  const [used] = await namespace.query<{ messages: string }>('select messages from $schema.daily_usage');
  const [taken] = await namespace.query<{ n: string }>(
    "select count(*) as n from $schema.messages where state = 'DELIVERED'",
  );
  expect(used?.messages).toBe(taken?.n);
});

it.each([
  ['the connections are cut', () => proxy.cut()],
  ['RabbitMQ closes the channels', () => proxy.closeChannels()],
])(
  '%s while attempts run, between delivery and acknowledgement: nothing is lost, nothing comes twice',
  async (name, happen) => {
    const path = `/${name.length}`;
    // the publishing connection may come back later than the one that delivers
    await ready();
    slowness = 300;
    const attempts = await publishMany(path, 0, 150);
    await eventually(() => expect(arrivals(path).length).toBeGreaterThan(20));
    happen();
    await expectOnce(path, attempts);
  },
);
