import { connect } from 'amqplib';
import { describeTopology } from '../../../src/services/queue/rabbitmq/topology.js';
import { backendAddress } from '../../support/environment.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import {
  publishUntilTaken,
  queueNamespace,
  type Receiver,
  startReceiver,
} from '../../support/queue/queue.js';
import { TOKENS } from '../../support/tokens.js';

const namespace = queueNamespace({
  allowedDestinations: ['127.0.0.0/8'],
  circuitFailures: 3,
  circuitOpenMs: 2_000,
});
let gateway: RunningGateway;
const receivers: Receiver[] = [];

beforeAll(async () => {
  gateway = await startGateway({ queue: namespace.config });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterEach(async () => {
  await namespace.query(
    "update $schema.messages set state = 'CANCELED', finished_at = now() where finished_at is null",
  );
  await Promise.all(receivers.splice(0).map((receiver) => receiver.stop()));
});
afterAll(async () => {
  await gateway?.stop();
  await namespace.remove();
});

async function receiver(...given: Parameters<typeof startReceiver>): Promise<Receiver> {
  const started = await startReceiver(...given);
  receivers.push(started);
  return started;
}

/** As many messages to each URL as said, many at once. */
async function publishAll(urls: readonly string[], each: number, headers = {}): Promise<string[]> {
  const ids: string[] = [];
  const rest = Array.from({ length: each }, (_, n) => urls.map((url) => `${url}/${n}`)).flat();
  const sender = async () => {
    for (let url = rest.shift(); url !== undefined; url = rest.shift()) {
      const { status, body } = await publishUntilTaken(gateway, url, headers);
      expect(status).toBe(200);
      ids.push(body.messageId as string);
    }
  };
  await Promise.all(Array.from({ length: 16 }, sender));
  return ids;
}

async function read<T>(path: string, authorization = `Bearer ${TOKENS.queue}`): Promise<T> {
  const reply = await fetch(`${gateway.url}/${path}`, { headers: { authorization } });
  expect(reply.status).toBe(200);
  return (await reply.json()) as T;
}

interface Destination {
  destination: string;
  circuit: string;
  failures: number;
  waiting: number;
  openedAt?: number;
  nextProbeAt?: number;
}
const destinationOf = async ({ url }: Receiver) =>
  (await read<Destination[]>('queue/v2/destinations')).find(({ destination }) => destination === url);

describe.each([
  ['ports of one address', (url: string) => url],
  ['addresses', (url: string, n: number) => url.replace('127.0.0.1', `127.0.1.${n + 1}`)],
])('%s that hang', (what, named) => {
  it.each(what === 'addresses' ? [10] : [1, 2, 10, 100])('do not hold up others (%p)', async (hosts) => {
    const hanging = await Promise.all(
      Array.from({ length: hosts }, () =>
        receiver(() => undefined, 0, what === 'addresses' ? '0.0.0.0' : '127.0.0.1'),
      ),
    );
    const good = await receiver();
    // more than there are places, and more to each than its share
    await publishAll(
      hanging.map(({ url }, n) => named(url, n)),
      Math.max(12, Math.ceil(500 / hosts)),
    );
    await eventually(() => expect(hanging.every(({ received }) => received.length > 0)).toBe(true));
    // more at once than one destination may have
    await publishAll([good.url], 250);
    await eventually(() => expect(new Set(good.received.map(({ url }) => url)).size).toBe(250));
    // none of them has answered: nothing has got its place from an attempt that ended
    const ended = 'select count(*)::int as n from $schema.messages where attempt > 0 and finished_at is null';
    expect(await namespace.query(ended)).toEqual([{ n: 0 }]);
  });
});

it('a destination that never answers costs a probe now and then, until it does', async () => {
  let hangs = true;
  const sick = await receiver((_, response) => {
    if (!hangs) response.end();
  });
  const headers = { 'upstash-retries': '0', 'upstash-timeout': '1s' };
  await publishAll([sick.url], 3, headers);
  const opened = await eventually(async () => {
    const seen = await destinationOf(sick);
    expect(seen).toMatchObject({ circuit: expect.stringMatching(/open/), failures: 3 });
    return seen as Destination;
  });
  expect(opened.nextProbeAt).toBeGreaterThan(opened.openedAt as number);
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  // and those of the tests before
  expect(metrics).toMatch(/portico_queue_circuits\{state="(open|half-open)"\} [1-9]/);
  // these may wait for a minute, in which the destination comes back
  await publishAll([sick.url], 20, { 'upstash-retries': '0', 'upstash-timeout': '60s' });
  await eventually(async () => expect((await destinationOf(sick))?.circuit).toBe('half-open'));
  hangs = false;
  await eventually(async () => {
    const [row] = await namespace.query<{ n: number }>(
      "select count(*)::int as n from $schema.messages where url like $1 and state = 'DELIVERED'",
      [`${sick.url}/%`],
    );
    // all but the probes that hung
    expect(row?.n).toBeGreaterThanOrEqual(15);
  });
  expect((await destinationOf(sick))?.circuit ?? 'closed').toBe('closed');
});

it('a message fails in time although its destination gets probes alone, and says so', async () => {
  const dead = await receiver(() => undefined);
  const headers = { 'upstash-retries': '0', 'upstash-timeout': '1s' };
  const ids = await publishAll([dead.url], 3, headers);
  await eventually(async () =>
    expect(await destinationOf(dead)).toMatchObject({ circuit: expect.stringMatching(/open/) }),
  );
  ids.push(...(await publishAll([dead.url], 27, headers)));
  await eventually(async () => {
    const letters = await namespace.query<{ error: string }>(
      'select failure_error as error from $schema.messages where dead and id = any($1)',
      [ids],
    );
    expect(letters).toHaveLength(30);
    const notAttempted = letters.filter(({ error }) => error.startsWith('not attempted: '));
    expect(notAttempted.length + dead.received.length).toBe(30);
    expect(notAttempted.length).toBeGreaterThan(0);
  });
});

it('a message whose gateway died while it waited for an answer is found although much else is overdue', async () => {
  // one delivery at a time, which keeps its place
  const stuck = queueNamespace({ concurrency: 1, slowAfterMs: 3_600_000 }, 'test_stuck');
  const own = await startGateway({ queue: stuck.config });
  let hangs = true;
  const slow = await receiver((_, response) => {
    if (!hangs) response.end();
  });
  const connection = await connect(backendAddress('PORTICO_RABBITMQ_URL'));
  try {
    await eventually(async () => expect((await fetch(`${own.url}/readyz`)).status).toBe(200));
    expect((await publishUntilTaken(own, `${slow.url}/first`, { 'upstash-timeout': '20s' })).status).toBe(
      200,
    );
    await eventually(() => expect(slow.received).toHaveLength(1));
    const channel = await connection.createConfirmChannel();
    const { names } = describeTopology(stuck.prefix);
    for (let n = 0; n < 2_100; n++)
      channel.sendToQueue(names.work, Buffer.from(JSON.stringify([`msg_nobody${n}`, 0])));
    await channel.waitForConfirms();
    const { body } = await publishUntilTaken(own, `${slow.url}/abandoned`);
    const { body: patient } = await publishUntilTaken(own, `${slow.url}/patient`);
    // as RabbitMQ and Postgres stand when the claim's gateway is gone, and its ticket long acknowledged
    await stuck.query(
      `update $schema.messages set sweep_at = now() - interval '1 minute', claims = claims + (id = $1)::int,
        state = case when id = $1 then 'ACTIVE' else state end,
        lease_until = case when id = $1 then now() - interval '1 second' end
      where id = any($2)`,
      [body.messageId, [body.messageId, patient.messageId]],
    );
    const swept =
      'select id from $schema.messages where finished_at is null and sweep_at > now() and id = any($1)';
    await eventually(async () =>
      expect(await stuck.query(swept, [[body.messageId, patient.messageId]])).toEqual([
        { id: body.messageId },
      ]),
    );
    hangs = false;
    await eventually(() =>
      expect(new Set(slow.received.map(({ url }) => url))).toEqual(
        new Set(['/first', '/abandoned', '/patient']),
      ),
    );
  } finally {
    await connection.close();
    await own.stop();
    await stuck.remove();
  }
});
