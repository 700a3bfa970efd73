import { createServer } from 'node:net';
import { Receiver as SignatureReceiver } from '@upstash/qstash';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import {
  messageIdOf,
  publish,
  publishUntilTaken,
  queueNamespace,
  type Received,
  type Receiver,
  startReceiver,
} from '../../support/queue/queue.js';
import { TOKENS } from '../../support/tokens.js';

const namespace = queueNamespace({ maxMessageSize: 65_536, maxRetries: 5 });
let gateway: RunningGateway;
let receiver: Receiver;
let answers: (
  request: Received,
) => { status?: number; headers?: Record<string, string>; body?: string } | undefined;

beforeAll(async () => {
  gateway = await startGateway({ queue: namespace.config });
  receiver = await startReceiver((request, response) => {
    const answer = answers(request);
    if (answer === undefined) return;
    response.writeHead(answer.status ?? 200, answer.headers ?? {});
    response.end(answer.body ?? '');
  });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  await gateway?.stop();
  await receiver?.stop();
  await namespace.remove();
});
beforeEach(() => {
  answers = () => ({});
});

let paths = 0;
/** A path of its own, so that each test sees only its messages. */
const freshPath = () => `/${++paths}`;
const at = (path: string) => receiver.received.filter(({ url }) => url.split('?')[0] === path);
const arrived = (path: string, count: number) =>
  eventually(() => {
    expect(at(path).length).toBeGreaterThanOrEqual(count);
    return at(path);
  });
const json = (request: Received | undefined) => JSON.parse(String(request?.body)) as Record<string, unknown>;
const text = (base64: unknown) => Buffer.from(String(base64), 'base64').toString();

async function state(id: string | undefined): Promise<string | undefined> {
  const [row] = await namespace.query<{ state: string }>('select state from $schema.messages where id = $1', [
    id,
  ]);
  return row?.state;
}

it('delivers method, body bytes and headers, and signs them over the destination as it was sent', async () => {
  const path = freshPath();
  const destination = `${receiver.url}${path}?b=2&a=%20x&b=1`;
  const body = Buffer.from('{"text":"ä",  "n":1}');
  const reply = await publish(
    gateway,
    destination,
    {
      'content-type': 'application/json',
      'upstash-method': 'PUT',
      'upstash-forward-my-header': 'mine',
      'x-not-forwarded': '1',
    },
    body,
  );
  expect(reply).toMatchObject({
    status: 200,
    body: { messageId: expect.stringMatching(/^msg_/), url: destination },
  });
  const [delivered] = await arrived(path, 1);
  expect(delivered).toMatchObject({ method: 'PUT', url: `${path}?b=2&a=%20x&b=1`, body });
  expect(delivered?.headers).toMatchObject({
    'content-type': 'application/json',
    'my-header': 'mine',
    'user-agent': 'Upstash-QStash',
    'upstash-message-id': reply.body.messageId,
    'upstash-retried': '0',
  });
  expect(delivered?.headers).not.toHaveProperty('x-not-forwarded');
  expect(delivered?.headers).not.toHaveProperty('authorization');
  const { currentSigningKey, nextSigningKey } = TOKENS;
  const signature = String(delivered?.headers['upstash-signature']);
  await expect(
    new SignatureReceiver({ currentSigningKey, nextSigningKey }).verify({
      signature,
      body: String(body),
      url: destination,
    }),
  ).resolves.toBe(true);
  await eventually(async () => expect(await state(reply.body.messageId)).toBe('DELIVERED'));
});

it("speaks the contract's prefix to those who do, and takes bytes that are no text and no body at all", async () => {
  const path = freshPath();
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  await publish(gateway, receiver.url + path, { 'service-retries': '0', 'content-encoding': 'gzip' }, bytes);
  await publish(gateway, receiver.url + path, { 'service-method': 'GET' });
  const all = await arrived(path, 2);
  const [withBytes, empty] = [
    all.find(({ method }) => method === 'POST'),
    all.find(({ method }) => method === 'GET'),
  ];
  expect(withBytes?.body).toEqual(bytes);
  expect(withBytes?.headers).toMatchObject({ 'content-encoding': 'gzip', 'service-retried': '0' });
  expect(withBytes?.headers).not.toHaveProperty('upstash-message-id');
  expect(empty?.body.length).toBe(0);
});

it('waits for a delay and for a time, to within a second', async () => {
  const waits: { lateMs: number }[] = [];
  // a busy machine leaves the time for that sooner or later
  await eventually(async () => {
    waits.unshift(await waitFor('upstash-delay', '1s', performance.now() + 1_000));
    expect(waits[0]?.lateMs).toBeLessThan(1_000);
  });
  await eventually(async () => {
    const notBefore = Math.ceil(Date.now() / 1_000) + 2;
    const due = performance.now() + notBefore * 1_000 - Date.now();
    waits.unshift(await waitFor('upstash-not-before', String(notBefore), due));
    expect(waits[0]?.lateMs).toBeLessThan(1_000);
  });
  for (const { lateMs } of waits) expect(lateMs).toBeGreaterThanOrEqual(-1);
});

/** @param due `performance.now()` when the message is to arrive */
async function waitFor(header: string, value: string, due: number): Promise<{ lateMs: number }> {
  const path = freshPath();
  await publish(gateway, receiver.url + path, { [header]: value });
  const [delivered] = await arrived(path, 1);
  return { lateMs: (delivered?.at ?? 0) - due };
}

it('retries after the pause that the destination asks for, calls back each time, and stops at success', async () => {
  const [path, callback] = [freshPath(), freshPath()];
  answers = ({ url }) =>
    url === path && at(path).length < 3
      ? { status: 503, headers: { 'Retry-After': '300ms', 'X-Why': 'busy' }, body: `no ${at(path).length}` }
      : { status: 201, body: 'yes' };
  const reply = await publish(
    gateway,
    receiver.url + path,
    {
      'upstash-retries': '4',
      'upstash-callback': receiver.url + callback,
      'upstash-callback-forward-key': 'k',
      'content-type': 'text/plain',
    },
    'question',
  );
  const attempts = await arrived(path, 3);
  expect(attempts.map(({ headers }) => headers['upstash-retried'])).toEqual(['0', '1', '2']);
  expect(new Set(attempts.map(({ headers }) => headers['upstash-message-id']))).toEqual(
    new Set([reply.body.messageId]),
  );
  expect((attempts[1]?.at ?? 0) - (attempts[0]?.at ?? 0)).toBeGreaterThanOrEqual(300);
  expect((attempts[1]?.at ?? 0) - (attempts[0]?.at ?? 0)).toBeLessThan(PROMPT_MS);
  const callbacks = (await arrived(callback, 3)).sort(
    (a, b) => Number(json(a).retried) - Number(json(b).retried),
  );
  expect(
    callbacks.map((c) => json(c)).map(({ status, retried, body }) => [status, retried, text(body)]),
  ).toEqual([
    [503, 0, 'no 1'],
    [503, 1, 'no 2'],
    [201, 2, 'yes'],
  ]);
  expect(json(callbacks[0])).toMatchObject({
    header: { 'X-Why': ['busy'] },
    maxRetries: 4,
    sourceMessasgeId: reply.body.messageId,
    url: receiver.url + path,
    method: 'POST',
    sourceHeader: { 'Content-Type': ['text/plain'] },
    sourceBody: Buffer.from('question').toString('base64'),
    createdAt: expect.stringMatching(/^\d{13}$/),
    notBefore: expect.stringMatching(/^\d{13}$/),
  });
  expect(callbacks[0]?.headers).toMatchObject({ key: 'k', 'content-type': 'application/json' });
  expect(callbacks[0]?.headers['upstash-message-id']).not.toBe(reply.body.messageId);
  await eventually(async () => expect(await state(reply.body.messageId)).toBe('DELIVERED'));
  expect(at(path)).toHaveLength(3);
});

it('buries a message whose retries are used up, and calls back with the id of the dead letter', async () => {
  const [path, failed] = [freshPath(), freshPath()];
  answers = ({ url }) =>
    url === path ? { status: 500, headers: { 'Retry-After': '0' }, body: 'broken' } : {};
  const reply = await publish(gateway, receiver.url + path, {
    'upstash-retries': '2',
    'upstash-failure-callback': receiver.url + failed,
    'upstash-failure-callback-method': 'PUT',
  });
  const [callback] = await arrived(failed, 1);
  expect(at(path)).toHaveLength(3);
  expect(callback?.method).toBe('PUT');
  const told = json(callback);
  expect(told).toMatchObject({
    status: 500,
    retried: 2,
    maxRetries: 2,
    dlqId: expect.stringMatching(/^\d+-\d+$/),
  });
  const rows = await namespace.query(
    `select message_id, failure_status, failure_body, failure_error
      from $schema.dead_letters d join $schema.messages m on m.id = d.message_id where d.id = $1`,
    [told.dlqId],
  );
  expect(rows).toEqual([
    {
      message_id: reply.body.messageId,
      failure_status: 500,
      failure_body: Buffer.from('broken'),
      failure_error: null,
    },
  ]);
  expect(await state(reply.body.messageId)).toBe('FAILED');
  expect(at(failed)).toHaveLength(1);
});

it('ends a message at once when the destination says that retrying is no use', async () => {
  const [path, failed] = [freshPath(), freshPath()];
  answers = ({ url }) =>
    url === path ? { status: 489, headers: { 'Upstash-NonRetryable-Error': 'true' } } : {};
  await publish(gateway, receiver.url + path, { 'upstash-failure-callback': receiver.url + failed });
  expect(json((await arrived(failed, 1))[0])).toMatchObject({ status: 489, retried: 0, maxRetries: 3 });
  expect(at(path)).toHaveLength(1);
});

describe('what is no success', () => {
  const outcome = async (destination: string, headers: Record<string, string> = {}) => {
    const failed = freshPath();
    await publish(gateway, destination, {
      'upstash-retries': '0',
      'upstash-failure-callback': receiver.url + failed,
      ...headers,
    });
    const { status, body, header } = json((await arrived(failed, 1))[0]);
    return { status, body: text(body), header };
  };

  it('a redirect, which is not followed', async () => {
    const [path, elsewhere] = [freshPath(), freshPath()];
    answers = ({ url }) => (url === path ? { status: 307, headers: { Location: elsewhere } } : {});
    expect(await outcome(receiver.url + path)).toMatchObject({
      status: 307,
      header: { Location: [elsewhere] },
    });
    expect(at(elsewhere)).toEqual([]);
  });

  it('a destination that does not answer in time', async () => {
    const path = freshPath();
    answers = ({ url }) => (url === path ? undefined : {});
    expect(await outcome(receiver.url + path, { 'upstash-timeout': '1s' })).toMatchObject({
      status: 0,
      body: expect.stringContaining('no complete response within 1000 ms'),
    });
  });

  it('nobody there, and a name that does not exist', async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
    const { port } = closed.address() as { port: number };
    await new Promise((resolve) => closed.close(resolve));
    expect(await outcome(`http://127.0.0.1:${port}/`)).toMatchObject({
      status: 0,
      body: expect.stringContaining('ECONNREFUSED'),
    });
    expect(await outcome('http://no-such-host.invalid/')).toMatchObject({
      status: 0,
      body: expect.stringMatching(/ENOTFOUND|EAI_AGAIN/),
    });
  });
});

it('cuts a long response to the size limit, and delivers callbacks that are longer than messages may be', async () => {
  const [path, callback] = [freshPath(), freshPath()];
  answers = ({ url }) => (url === path ? { body: 'x'.repeat(300_000) } : {});
  await publish(
    gateway,
    receiver.url + path,
    { 'upstash-callback': receiver.url + callback },
    'y'.repeat(65_536),
  );
  const told = json((await arrived(callback, 1))[0]);
  expect(text(told.body)).toBe('x'.repeat(65_536));
  expect(text(told.sourceBody)).toHaveLength(65_536);
});

describe('refusals', () => {
  it.each([
    ['', {}, 400, /destination is missing/],
    ['ftp://example.com/', {}, 400, /scheme ftp/],
    ['example.com/x', {}, 400, /not an absolute URL/],
    ['no-such-group', {}, 404, /no-such-group is neither a URL/],
    ['http://127.0.0.2/', {}, 400, /127\.0\.0\.2 is not a public address/],
    ['http://0x7f000002/', {}, 400, /127\.0\.0\.2 is not a public address/],
    ['http://[::1]:80/', {}, 400, /::1 is not a public address/],
    ['http://169.254.169.254/latest/meta-data', {}, 400, /link-local or metadata/],
    [
      'https://example.com/',
      { 'upstash-callback': 'http://10.0.0.1/' },
      400,
      /10\.0\.0\.1 is not a public address/,
    ],
    ['https://example.com/', { 'upstash-dedup-id': 'a' }, 400, /upstash-dedup-id: is not supported/],
    [`https://example.com/${'x'.repeat(100_000)}`, {}, 400, /longer than 16384 characters/],
    ['https://example.com/?upstash-label=a%0d%0ab', {}, 400, /cannot stand in a header/],
    ['https://example.com/?upstash-retries=9', {}, 400, /limit of 5/],
    ['https://example.com/', { 'upstash-delay': '31d' }, 400, /limit of 2592000 s/],
  ])('%s %p: %i', async (destination, headers, status, reason) => {
    const reply = await publish(gateway, destination, headers);
    expect(reply).toMatchObject({ status, body: { error: expect.stringMatching(reason) } });
  });

  it('a wrong token, and a body over the limit', async () => {
    expect(await publish(gateway, 'https://example.com/', { authorization: 'Bearer wrong' })).toMatchObject({
      status: 401,
    });
    expect(await publish(gateway, 'https://example.com/', {}, 'x'.repeat(65_537))).toMatchObject({
      status: 413,
      body: { error: expect.stringContaining('65536') },
    });
  });

  it('leave nothing behind', async () => {
    expect(await namespace.query("select id from $schema.messages where url like '%example.com%'")).toEqual(
      [],
    );
  });
});

it('takes the token from the query, where it does not reach the destination', async () => {
  const path = freshPath();
  const reply = await fetch(
    `${gateway.url}/queue/v2/publish/${receiver.url}${path}?a=1&qstash_token=${TOKENS.queue}`,
    { method: 'POST' },
  );
  expect(reply.status).toBe(200);
  expect((await arrived(path, 1))[0]?.url).toBe(`${path}?a=1`);
});

it('delivers many messages of many senders, each exactly once while nothing breaks', async () => {
  const path = freshPath();
  const replies = await Promise.all(
    Array.from({ length: 300 }, (_, i) =>
      publishUntilTaken(gateway, `${receiver.url}${path}?${i}`, {}, String(i)),
    ),
  );
  const ids = new Set(replies.map(({ body }) => body.messageId));
  expect(ids.size).toBe(300);
  const taken = () => at(path).filter((one) => ids.has(messageIdOf(one)));
  await eventually(() => expect(taken().length).toBeGreaterThanOrEqual(300));
  await eventually(async () => {
    const [row] = await namespace.query<{ open: string }>(
      'select count(*) as open from $schema.messages where finished_at is null',
    );
    expect(row?.open).toBe('0');
  });
  const got = taken().map(({ url, body }) => [url, String(body)].join());
  expect(new Set(got).size).toBe(300);
  expect(got).toHaveLength(300);
});

it('counts what it does', async () => {
  const path = freshPath();
  answers = ({ url }) => (url === path ? { status: 500, headers: { 'Retry-After': '0' } } : {});
  await publish(gateway, receiver.url + path, { 'upstash-retries': '1' });
  await publish(gateway, receiver.url + freshPath());
  await eventually(async () => {
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    const value = (series: string) =>
      Number(new RegExp(`^${series.replace(/[{}]/g, '\\$&')} (.*)$`, 'm').exec(metrics)?.[1]);
    expect(value('portico_queue_published_total')).toBeGreaterThan(1);
    for (const outcome of ['delivered', 'retried', 'dead'])
      expect(value(`portico_queue_outcomes_total{outcome="${outcome}"}`)).toBeGreaterThan(0);
    expect(value('portico_queue_responses_total{status="5xx"}')).toBeGreaterThan(1);
    expect(value('portico_queue_attempts_in_flight')).toBe(0);
    expect(value('portico_queue_lateness_seconds_count')).toBeGreaterThan(2);
    expect(value('portico_queue_attempt_seconds_count')).toBeGreaterThan(2);
  });
});

it('tells its limits', async () => {
  for (const [path, authorization] of [
    ['/v1/quota', `Bearer ${TOKENS.queue}`],
    ['/v1/quota/', TOKENS.queue],
  ] as const) {
    const reply = await fetch(`${gateway.url}/queue${path}`, { headers: { authorization } });
    expect(await reply.json()).toEqual({
      maxTopics: 20,
      maxEndpointsPerTopic: 100,
      maxMessageSize: 65_536,
      maxRetries: 5,
      maxSchedules: 100,
      maxRequestsPerDay: 0,
      retention: 604_800,
      timeout: 300,
      maxDelay: 2_592_000,
    });
  }
});
