import { amount } from '../../support/amount.js';
import { eventually, HANGS_MS } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import {
  messageIdOf,
  publishUntilTaken,
  queueNamespace,
  type Receiver,
  startReceiver,
} from '../../support/queue/queue.js';
import { TOKENS } from '../../support/tokens.js';

/** Sender, gateway and receiver are one process here, which is busy for longer than the tests' usual leases hold. */
const namespace = queueNamespace({ leaseMs: 60_000 });
/** As many as a URL group may have, with the time for 100 MiB through one process that is sender, gateway and receiver. */
const ENDPOINTS = amount(30, 100);
const LETTERS = amount(15, 40);
const BODY = Buffer.alloc(1_048_576, 'x');
let gateway: RunningGateway;
let receiver: Receiver;
let status = 200;

beforeAll(async () => {
  gateway = await startGateway({ queue: namespace.config });
  receiver = await startReceiver((_, response) => void response.writeHead(status).end());
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  await gateway?.stop();
  await receiver?.stop();
  await namespace.remove();
});
beforeEach(() => {
  status = 200;
});

const call = async <T>(path: string, method: string, headers = {}, body?: string): Promise<[number, T]> => {
  const reply = await fetch(`${gateway.url}/queue${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKENS.queue}`, ...headers },
    ...(body === undefined ? {} : { body }),
  });
  return [reply.status, (await reply.json()) as T];
};

it('a URL group with many endpoints gets the largest message, each of them once', async () => {
  const endpoints = Array.from({ length: ENDPOINTS }, (_, i) => ({ url: `${receiver.url}/group/${i}` }));
  await call('/v2/topics/large/endpoints', 'POST', {}, JSON.stringify({ endpoints }));
  const reply = await publishUntilTaken(gateway, 'large', {}, BODY);
  expect(reply).toMatchObject({ status: 200 });
  const ids = new Set((reply.body as unknown as { messageId: string }[]).map(({ messageId }) => messageId));
  const taken = () => receiver.received.filter((one) => ids.has(messageIdOf(one)));
  // a starved machine took 100 s for 100 MiB
  await eventually(() => expect(taken().length).toBeGreaterThanOrEqual(ENDPOINTS), 4 * HANGS_MS);
  expect(taken().length).toBe(ENDPOINTS);
  expect(new Set(taken().map(({ url }) => url)).size).toBe(ENDPOINTS);
  expect(taken().every(({ body }) => body.equals(BODY))).toBe(true);
}, 600_000);

it('dead letters of the largest size are all sent again, by filter in pages and by id', async () => {
  status = 500;
  const label = { 'upstash-retries': '0', 'upstash-label': 'large-dead' };
  for (let i = 0; i < LETTERS; i++)
    expect((await publishUntilTaken(gateway, `${receiver.url}/dead/${i}`, label, BODY)).status).toBe(200);
  await eventually(async () => {
    const [row] = await namespace.query<{ n: number }>('select count(*)::int as n from $schema.dead_letters');
    expect(row?.n).toBe(LETTERS);
  });
  type Resent = { cursor: string; responses: { messageId: string }[] };
  const later = { 'upstash-delay': '1h' };
  const [first, some] = await call<Resent>('/v2/dlq/retry?label=large-dead&count=10', 'POST', later);
  expect([first, some.cursor]).toEqual([201, expect.stringMatching(/^\d+\.\d+-\d+$/)]);
  // a call goes on for 5 s at most, in which a busy machine does not send ten
  expect(some.responses.length).toBeGreaterThan(0);
  expect(some.responses.length).toBeLessThanOrEqual(10);
  const letters = await namespace.query<{ id: string }>('select id from $schema.dead_letters');
  expect(letters).toHaveLength(LETTERS - some.responses.length);
  const path = `/v2/dlq/retry?dlqIds=${letters.map(({ id }) => id).join(',')}`;
  let sent = 0;
  for (let cursor: string | undefined; cursor !== ''; ) {
    const [code, rest] = await call<Resent>(path, 'POST', later);
    expect(code).toBe(201);
    sent += rest.responses.length;
    cursor = rest.cursor;
  }
  expect(sent).toBe(letters.length);
  const waiting = await namespace.query<{ n: number }>(
    `select count(distinct url)::int as n from $schema.messages where finished_at is null and url like '%/dead/%'`,
  );
  expect(waiting).toEqual([{ n: LETTERS }]);
});
