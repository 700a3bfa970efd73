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

it('a URL group with the most endpoints gets the largest message, each of them once', async () => {
  const endpoints = Array.from({ length: 100 }, (_, i) => ({ url: `${receiver.url}/group/${i}` }));
  await call('/v2/topics/large/endpoints', 'POST', {}, JSON.stringify({ endpoints }));
  const reply = await publishUntilTaken(gateway, 'large', {}, BODY);
  expect(reply).toMatchObject({ status: 200 });
  const ids = new Set((reply.body as unknown as { messageId: string }[]).map(({ messageId }) => messageId));
  const taken = () => receiver.received.filter((one) => ids.has(messageIdOf(one)));
  // 100 MiB through one process that is all three: a starved machine took 100 s
  await eventually(() => expect(taken().length).toBeGreaterThanOrEqual(100), 4 * HANGS_MS);
  expect(taken().length).toBe(100);
  expect(new Set(taken().map(({ url }) => url)).size).toBe(100);
  expect(taken().every(({ body }) => body.equals(BODY))).toBe(true);
}, 600_000);

it('dead letters of the largest size are all sent again, by filter in pages and by id', async () => {
  status = 500;
  const label = { 'upstash-retries': '0', 'upstash-label': 'large-dead' };
  for (let i = 0; i < 40; i++)
    expect((await publishUntilTaken(gateway, `${receiver.url}/dead/${i}`, label, BODY)).status).toBe(200);
  await eventually(async () => {
    const [row] = await namespace.query<{ n: number }>('select count(*)::int as n from $schema.dead_letters');
    expect(row?.n).toBe(40);
  });
  type Resent = { cursor: string; responses: { messageId: string }[] };
  const later = { 'upstash-delay': '1h' };
  const [first, some] = await call<Resent>('/v2/dlq/retry?label=large-dead&count=10', 'POST', later);
  expect([first, some.cursor]).toEqual([201, expect.stringMatching(/^\d+\.\d+-\d+$/)]);
  // a call goes on for 5 s at most, in which a busy machine does not send ten
  expect(some.responses.length).toBeGreaterThan(0);
  expect(some.responses.length).toBeLessThanOrEqual(10);
  const letters = await namespace.query<{ id: string }>('select id from $schema.dead_letters');
  expect(letters).toHaveLength(40 - some.responses.length);
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
  expect(waiting).toEqual([{ n: 40 }]);
});
