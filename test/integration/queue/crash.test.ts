import { amount } from '../../support/amount.js';
import { eventually } from '../../support/eventually.js';
import {
  type Published,
  publishUntilTaken,
  queueNamespace,
  type Receiver,
  startReceiver,
} from '../../support/queue/queue.js';
import { type SpawnedGateway, spawnGateway } from '../../support/spawned-gateway.js';
import { TOKENS } from '../../support/tokens.js';

const CONCURRENCY = 20;
/** Messages of a life. */
const SOME = amount(30, 100);
const namespace = queueNamespace({
  concurrency: CONCURRENCY,
  destinationConcurrency: CONCURRENCY,
  // so that a destination which is silent may have them all
  waitingConcurrency: 64 * CONCURRENCY,
  stopGraceMs: 30_000,
});
let receiver: Receiver;
/** What the destination does with a message; called with its number. */
let answer: (n: number, respond: (status: number, headers?: Record<string, string>) => void) => void;
const gateways: SpawnedGateway[] = [];

beforeAll(async () => {
  receiver = await startReceiver((request, response) => {
    const [path = '', number] = request.url.split('?');
    arrivals(path).push(Number(number));
    answer(Number(number), (status, headers = {}) => {
      response.writeHead(status, headers);
      response.end();
    });
  });
});
afterEach(async () => {
  await Promise.all(gateways.splice(0).map((gateway) => gateway.kill()));
});
afterAll(async () => {
  await receiver?.stop();
  await namespace.remove();
});

async function start(change: Record<string, unknown> = {}): Promise<SpawnedGateway> {
  const gateway = await spawnGateway({ queue: { ...namespace.config, ...change } });
  gateways.push(gateway);
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
  return gateway;
}

let round = 0;
const freshPath = () => `/${++round}`;
const arrived = new Map<string, number[]>();
/** The numbers of what came to a path, in their order. */
function arrivals(path: string): number[] {
  const numbers = arrived.get(path) ?? [];
  arrived.set(path, numbers);
  return numbers;
}

/** Numbers of the messages whose publish was answered 200; a connection that broke counts as refused. */
async function publishAccepted(
  gateway: SpawnedGateway,
  path: string,
  numbers: readonly number[],
  headers = {},
): Promise<number[]> {
  const replies = await Promise.all(
    numbers.map((n) =>
      publishUntilTaken(gateway, `${receiver.url}${path}?${n}`, headers).catch(
        (): Partial<Published> => ({}),
      ),
    ),
  );
  return numbers.filter((_, i) => replies[i]?.status === 200);
}
const range = (count: number, from = 0) => Array.from({ length: count }, (_, i) => from + i);

async function expectAllDelivered(path: string, accepted: readonly number[]): Promise<void> {
  await eventually(() => {
    const got = new Set(arrivals(path));
    expect(accepted.filter((n) => !got.has(n))).toEqual([]);
  });
  await eventually(async () => {
    const [row] = await namespace.query<{ open: number }>(
      'select count(*)::int as open from $schema.messages where finished_at is null',
    );
    expect(row?.open).toBe(0);
  });
}
const duplicates = (path: string) => arrivals(path).length - new Set(arrivals(path)).size;

it('killed while publishing, delivering, retrying and calling back, three times: every accepted message arrives', async () => {
  const [path, callbacks] = [freshPath(), freshPath()];
  answer = (n, respond) => {
    const tries = arrivals(path).filter((other) => other === n).length;
    setTimeout(() => respond(n % 3 === 0 && tries < 2 ? 500 : 200, { 'Retry-After': '200ms' }), 20);
  };
  const headers = { 'upstash-callback': `${receiver.url}${callbacks}?1` };
  const accepted: number[] = [];
  for (let life = 0; life < 3; life++) {
    const gateway = await start();
    const from = life * 3 * SOME;
    const first = await publishAccepted(gateway, path, range(SOME, from), headers);
    expect(first).toHaveLength(SOME);
    const rest = publishAccepted(gateway, path, range(2 * SOME, from + SOME), headers);
    await eventually(() => expect(arrivals(path).length).toBeGreaterThan(from + SOME / 3));
    await gateway.kill();
    accepted.push(...first, ...(await rest));
  }
  await start();
  await expectAllDelivered(path, accepted);
  // one callback an attempt whose outcome was written: at least one for every message
  expect(arrivals(callbacks).length).toBeGreaterThanOrEqual(accepted.length);
  const retried = accepted.filter((n) => n % 3 === 0);
  expect(retried.length).toBeGreaterThan(SOME);
  for (const n of retried)
    expect(arrivals(path).filter((other) => other === n).length).toBeGreaterThanOrEqual(2);
});

it('killed beside another gateway: that one takes over, with no more duplicates than were in flight', async () => {
  const path = freshPath();
  answer = (_, respond) => void setTimeout(respond, 30, 200);
  const [doomed, other] = [await start(), await start()];
  const accepted = await publishAccepted(other, path, range(4 * SOME));
  expect(accepted).toHaveLength(4 * SOME);
  await doomed.kill();
  await expectAllDelivered(path, accepted);
  expect(duplicates(path)).toBeLessThanOrEqual(CONCURRENCY);
});

it('killed while messages die and call back, twice: each is delivered or dead, with one dead letter and its failure callback', async () => {
  const [path, failed] = [freshPath(), freshPath()];
  answer = (n, respond) => {
    // every other message never succeeds; the failure callbacks carry the number 0 and do
    setTimeout(() => respond(n % 2 === 1 ? 500 : 200, { 'Retry-After': '100ms' }), 10);
  };
  const headers = { 'upstash-retries': '1', 'upstash-failure-callback': `${receiver.url}${failed}?0` };
  const accepted: number[] = [];
  for (let life = 0; life < 2; life++) {
    const gateway = await start();
    const some = publishAccepted(gateway, path, range(2 * SOME, life * 2 * SOME), headers);
    await eventually(() => expect(arrivals(failed).length).toBeGreaterThan(SOME / 10 + life * SOME));
    await gateway.kill();
    accepted.push(...(await some));
  }
  await start();
  await expectAllDelivered(path, accepted);
  const letters = await namespace.query<{ url: string }>(
    'select url from $schema.dead_letters d join $schema.messages m on m.id = d.message_id where url like $1',
    [`%${path}?%`],
  );
  const dead = letters.map(({ url }) => Number(url.split('?')[1])).sort((a, b) => a - b);
  expect(new Set(dead).size).toBe(dead.length);
  expect(accepted.filter((n) => n % 2 === 1 && !dead.includes(n))).toEqual([]);
  const ids = receiver.received
    .filter(({ url }) => url.startsWith(`${failed}?`))
    .map(({ body }) => (JSON.parse(String(body)) as { dlqId: string }).dlqId);
  // each once, but for those that were on their way when a gateway died
  expect(new Set(ids).size).toBe(dead.length);
  expect(ids.length - dead.length).toBeLessThanOrEqual(2 * CONCURRENCY);
});

it('killed in the midst of an ordered queue: all arrive, and none before the one that was published before it', async () => {
  const path = freshPath();
  answer = (_, respond) => void setTimeout(respond, 10, 200);
  const enqueue = async (gateway: SpawnedGateway, n: number) => {
    const reply = await fetch(`${gateway.url}/queue/v2/enqueue/ordered/${receiver.url}${path}?${n}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKENS.queue}` },
    });
    expect(reply.status).toBe(200);
  };
  const doomed = await start();
  for (let n = 0; n < 60; n++) await enqueue(doomed, n);
  await doomed.kill();
  const other = await start();
  for (let n = 60; n < 80; n++) await enqueue(other, n);
  await expectAllDelivered(path, range(80));
  const firsts = arrivals(path).filter((n, i, all) => all.indexOf(n) === i);
  expect(firsts).toEqual(range(80));
  expect(duplicates(path)).toBeLessThanOrEqual(1);
});

describe('SIGTERM', () => {
  it('lets attempts end and delivers nothing twice', async () => {
    const path = freshPath();
    const open: (() => void)[] = [];
    answer = (_, respond) => void open.push(() => respond(200));
    const gateway = await start();
    const accepted = await publishAccepted(gateway, path, range(50));
    await eventually(() => expect(arrivals(path)).toHaveLength(CONCURRENCY));
    const stopped = gateway.stop();
    await eventually(() => expect(gateway.lines.join('\n')).toContain('"msg":"stopping"'));
    // it may take some more before it takes none
    answer = (_, respond) => respond(200);
    for (const end of open) end();
    expect(await stopped).toBe(0);
    expect(duplicates(path)).toBe(0);
    await start();
    await expectAllDelivered(path, accepted);
    expect(duplicates(path)).toBe(0);
  });

  it('interrupts attempts that take too long, and the next gateway repeats them at once', async () => {
    const path = freshPath();
    let hang = true;
    answer = (_, respond) => {
      if (!hang) respond(200);
    };
    const gateway = await start({ stopGraceMs: 1_000 });
    const accepted = await publishAccepted(gateway, path, range(10));
    await eventually(() => expect(arrivals(path)).toHaveLength(10));
    const started = performance.now();
    expect(await gateway.stop()).toBe(0);
    // an attempt may take 5 minutes
    expect(performance.now() - started).toBeLessThan(60_000);
    hang = false;
    const leases = await namespace.query('select id from $schema.messages where lease_until > now()');
    expect(leases).toEqual([]);
    await start();
    await expectAllDelivered(path, accepted);
    expect(duplicates(path)).toBe(10);
  });
});
