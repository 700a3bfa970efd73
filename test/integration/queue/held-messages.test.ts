import pg from 'pg';
import { backendAddress } from '../../support/environment.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import {
  publish,
  publishUntilTaken,
  queueNamespace,
  type Receiver,
  startReceiver,
} from '../../support/queue/queue.js';
import { TOKENS } from '../../support/tokens.js';

/** The sweep would let go by itself what the parts under test forget. */
const namespace = queueNamespace({ sweepIntervalMs: 3_000 });
let gateway: RunningGateway;
let receiver: Receiver;
let fails: (path: string, body: string) => boolean = () => false;

beforeAll(async () => {
  gateway = await startGateway({ queue: namespace.config });
  receiver = await startReceiver((request, response) => {
    response.writeHead(fails(request.url, String(request.body)) ? 500 : 200, { 'Retry-After': '200ms' });
    response.end();
  });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
});
afterAll(async () => {
  jest.restoreAllMocks();
  await gateway?.stop();
  await receiver?.stop();
  await namespace.remove();
});
beforeEach(() => {
  fails = () => false;
});

const at = (path: string) => receiver.received.filter(({ url }) => url === path);
const call = (path: string, method = 'GET', headers: Record<string, string> = {}, body?: string) =>
  fetch(`${gateway.url}/queue${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKENS.queue}`, ...headers },
    ...(body === undefined ? {} : { body }),
  });
const enqueue = async (queue: string, path: string, body: string, headers: Record<string, string> = {}) =>
  expect((await call(`/v2/enqueue/${queue}/${receiver.url}${path}`, 'POST', headers, body)).status).toBe(200);

describe('a queue', () => {
  it('lets the next message begin only when the one before is done, its retries and callbacks included', async () => {
    const tries = new Map<string, number>();
    fails = (path, body) => {
      if (path === '/flaky/callback') return false;
      tries.set(body, (tries.get(body) ?? 0) + 1);
      return body === '1' ? (tries.get(body) ?? 0) < 3 : body === '2';
    };
    const headers = {
      'upstash-retries': '2',
      'upstash-callback': `${receiver.url}/flaky/callback`,
      'upstash-failure-callback': `${receiver.url}/flaky/callback`,
    };
    for (const body of ['0', '1', '2', '3']) await enqueue('flaky', '/flaky', body, headers);
    await eventually(() => expect(at('/flaky').at(-1)?.body.toString()).toBe('3'));
    const order = receiver.received.filter(({ url }) => url.startsWith('/flaky'));
    const sources = order.map(({ url, body }) =>
      url === '/flaky'
        ? String(body)
        : Buffer.from(JSON.parse(String(body)).sourceBody as string, 'base64').toString(),
    );
    // whatever belongs to a message comes before anything of the next one
    expect(sources.filter((source, i) => source !== sources[i - 1])).toEqual(['0', '1', '2', '3']);
    expect(at('/flaky').map(({ body }) => String(body))).toEqual(['0', '1', '1', '1', '2', '2', '2', '3']);
  });

  it('keeps the place of a delayed message, and gives it up when that is cancelled', async () => {
    await enqueue('delayed', '/delayed', 'first', { 'upstash-delay': '1h' });
    await enqueue('delayed', '/delayed', 'second');
    const { lag } = (await (await call('/v2/queues/delayed')).json()) as { lag: number };
    expect(lag).toBe(2);
    expect(at('/delayed')).toEqual([]);
    const reply = await call('/v2/messages?queueName=delayed&count=1', 'DELETE');
    expect(await reply.json()).toEqual({ cancelled: 1 });
    await eventually(() => expect(at('/delayed').map(({ body }) => String(body))).toEqual(['second']));
  });

  it('works on as many messages at once as it may', async () => {
    await call('/v2/queues', 'POST', {}, JSON.stringify({ queueName: 'wide', parallelism: 3, paused: true }));
    for (let n = 0; n < 10; n++) await enqueue('wide', '/wide', String(n));
    expect(at('/wide')).toEqual([]);
    const held = "select count(*)::int as n from $schema.messages where queue_name = 'wide' and held is null";
    expect(await namespace.query(held)).toEqual([{ n: 0 }]);
    await call('/v2/queues/wide/resume', 'POST');
    await eventually(() => expect(at('/wide')).toHaveLength(10));
  });

  it('goes on although a gateway died between an outcome and what it let go', async () => {
    await call('/v2/queues', 'POST', {}, JSON.stringify({ queueName: 'stuck', paused: true }));
    await enqueue('stuck', '/stuck', 'x');
    // as it looks after such a death: nothing is under way, somebody is held, nobody was told
    await namespace.query("update $schema.queues set paused = false where name = 'stuck'");
    await eventually(() => expect(at('/stuck')).toHaveLength(1));
  });

  it('refuses delayed callbacks and wrong names', async () => {
    const delayed = { 'upstash-callback': 'https://example.com', 'upstash-callback-delay': '1s' };
    expect((await call(`/v2/enqueue/q/${receiver.url}/x`, 'POST', delayed)).status).toBe(400);
    expect((await call(`/v2/enqueue/q%20q/${receiver.url}/x`, 'POST')).status).toBe(400);
    expect((await call('/v2/enqueue/q', 'POST')).status).toBe(400);
  });
});

describe('flow control', () => {
  const keyed = (key: string, value: string) => ({
    'upstash-flow-control-key': key,
    'upstash-flow-control-value': value,
  });

  it('begins no more attempts in a period than the rate says, in order', async () => {
    // on a busy machine attempts of one period may begin late, and then those of the next follow soon
    const keys = ['rated', 'again', 'and again', 'once more', 'at last'].values();
    await eventually(async () => {
      const times = await attemptsUnder(keys.next().value as string);
      for (let i = 4; i < 10; i++)
        expect((times[i] as number) - (times[i - 4] as number)).toBeGreaterThan(1_500);
    });
  });

  /** Ten messages, four in 3 s: when their attempts began by Postgres' clock, which the periods go by, in ms. */
  async function attemptsUnder(key: string): Promise<number[]> {
    const path = `/${encodeURIComponent(key)}`;
    const headers = keyed(key, 'rate=4,period=3s');
    for (let n = 0; n < 10; n++) await publish(gateway, receiver.url + path, headers, String(n));
    await eventually(() => expect(at(path)).toHaveLength(10));
    const begun = await namespace.query<{ ms: number }>(
      `select (extract(epoch from e.at) * 1000)::float8 as ms from $schema.events e
        join $schema.messages m on m.id = e.message_id where e.state = 'ACTIVE' and m.flow_key = $1 order by e.at`,
      [key],
    );
    return begun.map(({ ms }) => ms);
  }

  it.each([
    ['parallelism=1', 40, 1],
    ['rate=8', 40, 8],
    ['parallelism=2,rate=20', 60, 2],
  ])('lets messages go in the order in which they were published (%s)', async (value, count, atOnce) => {
    const path = `/order/${value}`;
    const key = `order ${count} ${value.length}`;
    for (let n = 0; n < count; n++) await publish(gateway, receiver.url + path, keyed(key, value), String(n));
    await eventually(() => expect(at(path)).toHaveLength(count));
    const begun = await namespace.query<{ n: string }>(
      `select convert_from(m.body, 'UTF8') as n from $schema.events e
        join $schema.messages m on m.id = e.message_id where e.state = 'ACTIVE' and m.flow_key = $1 order by e.seq`,
      [key],
    );
    if (atOnce === 1) {
      const published = Array.from({ length: count }, (_, n) => n);
      expect(begun.map(({ n }) => Number(n))).toEqual(published);
      expect(at(path).map(({ body }) => Number(body))).toEqual(published);
      return;
    }
    // of several that are let go at once any may begin first, and on a busy machine one may be late by more
    const moved = begun.map(({ n }, place) => Math.abs(Number(n) - place)).sort((a, b) => a - b);
    expect(moved).toHaveLength(count);
    expect(moved[count / 2]).toBeLessThan(atOnce);
  });

  it('lets retries of a message and what comes later wait for room alike', async () => {
    const tries = new Map<string, number>();
    fails = (_, body) => {
      tries.set(body, (tries.get(body) ?? 0) + 1);
      return tries.get(body) === 1;
    };
    for (let n = 0; n < 6; n++)
      await publish(gateway, `${receiver.url}/retried`, keyed('retried', 'parallelism=1'), String(n));
    await eventually(() => expect(at('/retried')).toHaveLength(12));
    await eventually(async () => {
      const left = await namespace.query('select * from $schema.flow_running where key = $1', ['retried']);
      expect(left).toEqual([]);
    });
  });

  it('takes messages while somebody has the lock of their key or queue, and lets them go afterwards', async () => {
    const headers = keyed('hot', 'parallelism=3');
    await publish(gateway, `${receiver.url}/hot`, headers);
    await enqueue('hot', '/hot', 'x');
    await eventually(() => expect(at('/hot')).toHaveLength(2));
    const client = new pg.Client({ connectionString: backendAddress('PORTICO_DATABASE_URL') });
    await client.connect();
    try {
      await client.query('begin');
      await client.query(`select from ${namespace.schema}.flow_controls for no key update`);
      await client.query(`select from ${namespace.schema}.queues for no key update`);
      const changed = keyed('hot', 'parallelism=7');
      const replies = await Promise.all(
        [headers, changed, { ...headers, 'upstash-queue-name': 'hot' }].map((sent) =>
          publish(gateway, `${receiver.url}/hot`, sent),
        ),
      );
      expect(replies.map(({ status }) => status)).toEqual([200, 200, 200]);
      await client.query('rollback');
    } finally {
      await client.end();
    }
    await eventually(() => expect(at('/hot')).toHaveLength(5));
    // the last limits came while they could not be written
    const { parallelismMax } = (await (await call('/v2/flowControl/hot')).json()) as {
      parallelismMax: number;
    };
    expect([3, 7]).toContain(parallelismMax);
  });

  it('frees the room of a gateway that died, when its lease is over', async () => {
    const headers = keyed('dead', 'parallelism=1');
    const { body } = await publish(gateway, `${receiver.url}/ghost`, { ...headers, 'upstash-delay': '1h' });
    // a claim whose gateway is gone
    await namespace.query(
      "update $schema.messages set state = 'ACTIVE', claims = 1, lease_until = now() + interval '1 second' where id = $1",
      [body.messageId],
    );
    await namespace.query('insert into $schema.flow_running (message_id, key, claims) values ($1, $2, 1)', [
      body.messageId,
      'dead',
    ]);
    await publish(gateway, `${receiver.url}/behind`, headers);
    await eventually(() => expect(at('/behind')).toHaveLength(1));
  });

  it('knows no key that no message named', async () => {
    expect((await call('/v2/flowControl/nobody')).status).toBe(404);
    expect((await call('/v2/flowControl/nobody/pause', 'POST')).status).toBe(404);
    expect((await call('/v2/flowControl/nobody/stop', 'POST')).status).toBe(404);
    expect((await call('/v2/flowControl/rated/pin?rate=0', 'POST')).status).toBe(400);
    const found = (await (await call('/v2/flowControl?search=rat')).json()) as { flowControlKey: string }[];
    expect(found.map(({ flowControlKey }) => flowControlKey)).toEqual(['rated']);
  });
});

it('schedules that are due together do not wait for each other', async () => {
  const cron = { 'upstash-cron': '0 0 1 1 *' };
  const create = async (name: string, headers = {}) =>
    expect(
      (await call(`/v2/schedules/${receiver.url}/due/${name}`, 'POST', { ...cron, ...headers })).status,
    ).toBe(200);
  await enqueue('slow', '/due/first', 'x');
  await create('held', { 'upstash-queue-name': 'slow' });
  for (let n = 0; n < 20; n++) await create(String(n));
  const client = new pg.Client({ connectionString: backendAddress('PORTICO_DATABASE_URL') });
  await client.connect();
  try {
    await client.query('begin');
    await client.query(`select from ${namespace.schema}.queues where name = 'slow' for update`);
    await namespace.query(
      `update $schema.schedules set next_at = case when destination like '%/held' then now() - interval '1 minute' else now() end`,
    );
    await eventually(() =>
      expect(receiver.received.filter(({ url }) => /^\/due\/\d/.test(url))).toHaveLength(20),
    );
    expect(at('/due/held')).toHaveLength(0);
    await client.query('rollback');
  } finally {
    await client.end();
  }
  await eventually(() => expect(at('/due/held')).toHaveLength(1));
});

it('refuses a cron expression that never comes or is endless, and stores none of it', async () => {
  const create = (cron: string) =>
    call(`/v2/schedules/${receiver.url}/never`, 'POST', { 'upstash-cron': cron });
  const replies = await Promise.all(
    ['0 0 31 2 *', '0 0 30 2 *', `${'0,'.repeat(300)}0 * * * *`].map(async (cron) => {
      const reply = await create(cron);
      return [reply.status, ((await reply.json()) as { error: string }).error];
    }),
  );
  expect(replies).toEqual([
    [400, expect.stringMatching(/never comes/)],
    [400, expect.stringMatching(/never comes/)],
    [400, expect.stringMatching(/at most 512 characters/)],
  ]);
  expect(await namespace.query("select id from $schema.schedules where destination like '%/never'")).toEqual(
    [],
  );
});

it('keeps delays when the clock of the gateway jumps', async () => {
  const started = performance.now();
  const real = Date.now;
  await publish(gateway, `${receiver.url}/jump`, { 'upstash-delay': '2s' });
  jest.spyOn(Date, 'now').mockImplementation(() => real() + 86_400_000);
  await publish(gateway, `${receiver.url}/jump`, { 'upstash-delay': '2s' });
  jest.spyOn(Date, 'now').mockImplementation(() => real() - 86_400_000);
  await publish(gateway, `${receiver.url}/jump`, { 'upstash-delay': '2s' });
  await eventually(() => expect(at('/jump')).toHaveLength(3));
  jest.restoreAllMocks();
  for (const { at: time } of at('/jump')) {
    expect(time - started).toBeGreaterThanOrEqual(1_990);
  }
});

it('gives a URL group instructions for messages that bring none of their own', async () => {
  const endpoints = JSON.stringify({ endpoints: [{ url: `${receiver.url}/default`, name: 'e' }] });
  expect((await call('/v2/topics/defaults/endpoints', 'POST', {}, endpoints)).status).toBe(200);
  const headers = JSON.stringify({
    headers: { 'Upstash-Method': ['PUT'], 'Upstash-Forward-X-Own': 'group' },
  });
  expect((await call('/v2/topics/defaults', 'PATCH', {}, headers)).status).toBe(200);
  await publish(gateway, 'defaults');
  await publish(gateway, 'defaults', { 'upstash-method': 'PATCH' });
  await eventually(() =>
    expect(at('/default').map((r) => [r.method, r.headers['x-own']])).toEqual(
      expect.arrayContaining([
        ['PUT', 'group'],
        ['PATCH', 'group'],
      ]),
    ),
  );
  const wrong = JSON.stringify({ headers: { 'Upstash-Retries': '77' } });
  expect((await call('/v2/topics/defaults', 'PATCH', {}, wrong)).status).toBe(400);
  expect((await call('/v2/topics/defaults', 'PATCH', {}, '{"headers":{"X-A":"1"}}')).status).toBe(400);
});

it('writes a dead letter and its failure callback although a gateway died between outcome and dead-letter exchange', async () => {
  const { body } = await publish(gateway, `${receiver.url}/dying`, {
    'upstash-delay': '1h',
    'upstash-failure-callback': `${receiver.url}/dead`,
  });
  await namespace.query(
    `update $schema.messages set state = 'FAILING', failure_status = 502, failure_headers = '{}', failure_body = 'bad', sweep_at = now()
      where id = $1`,
    [body.messageId],
  );
  await eventually(() => expect(at('/dead')).toHaveLength(1));
  const told = JSON.parse(String(at('/dead')[0]?.body)) as Record<string, unknown>;
  expect(told).toMatchObject({ status: 502, sourceMessageId: body.messageId, dlqId: expect.any(String) });
  const letter = (await (await call(`/v2/dlq/${told.dlqId}`)).json()) as Record<string, unknown>;
  expect(letter).toMatchObject({ dlqId: told.dlqId, responseStatus: 502, responseBody: 'bad' });
  const retried = await call(`/v2/dlq/retry/${told.dlqId}`, 'POST', {
    'upstash-retries': '1',
    'upstash-method': 'PUT',
  });
  expect(retried.status).toBe(201);
  await eventually(() => expect(at('/dying').map(({ method }) => method)).toEqual(['PUT']));
  expect((await call(`/v2/dlq/${told.dlqId}`)).status).toBe(404);
  expect((await call('/v2/dlq/retry/1-1', 'POST')).status).toBe(404);
});

it('takes one of many equal messages that come at the same time', async () => {
  const headers = { 'upstash-deduplication-id': 'at-once' };
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      publishUntilTaken(gateway, `${receiver.url}/once`, headers, String(i)),
    ),
  );
  expect(new Set(replies.map(({ body }) => body.messageId)).size).toBe(1);
  expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(202)]);
  await publish(gateway, `${receiver.url}/once`, {}, 'last');
  await eventually(() => expect(at('/once').map(({ body }) => String(body))).toContain('last'));
  expect(at('/once')).toHaveLength(2);
  // its key goes with a message that is cancelled
  const later = { 'upstash-deduplication-id': 'cancelled', 'upstash-delay': '1h' };
  const first = await publish(gateway, `${receiver.url}/once`, later);
  await call(`/v2/messages/${first.body.messageId}`, 'DELETE');
  expect((await publish(gateway, `${receiver.url}/once`, later)).status).toBe(200);
});

it('tells which entries of a batch are bad and why, whatever is in them', async () => {
  const entry = (change: object) => ({ destination: `${receiver.url}/batch`, body: 'b', ...change });
  const entries = [
    entry({}),
    null,
    entry({ destination: '' }),
    entry({ headers: { 'Content-Type': 'a\r\nb' } }),
    entry({ headers: { 'Upstash-Label': '\ud800' } }),
    entry({ headers: { 'Upstash-Forward-X': '\u0000' } }),
    entry({ destination: 'https://exämple.com/' }),
    entry({ body: 'x'.repeat(1_048_577) }),
    entry({ headers: { 'Upstash-Delay': '-5s' } }),
    entry({ body: '\u0000\ud800ä' }),
  ];
  const reply = await call('/v2/batch', 'POST', {}, JSON.stringify(entries));
  const results = (await reply.json()) as { messageId?: string; error?: string }[];
  expect(results.map(({ messageId }) => messageId !== undefined)).toEqual([
    true,
    ...Array(8).fill(false),
    true,
  ]);
  expect(results.map(({ error }) => error)).toMatchObject([
    undefined,
    expect.stringContaining('expected object'),
    expect.stringContaining('destination is missing'),
    expect.stringContaining('content-type'),
    expect.stringContaining('upstash-label'),
    expect.stringContaining('upstash-forward-x'),
    expect.stringContaining('percent-encoded'),
    expect.stringContaining('maxMessageSize'),
    expect.stringContaining('expected a duration'),
    undefined,
  ]);
  await eventually(() => expect(at('/batch')).toHaveLength(2));
});

it('never takes an empty id or an unknown filter for everything', async () => {
  const { body } = await publish(gateway, `${receiver.url}/safe`, { 'upstash-delay': '1h' });
  for (const path of [
    '/v2/messages/',
    '/v2/dlq/',
    '/v2/messages?labels=x',
    '/v2/dlq?messageID=1',
    '/v2/messages?label=',
  ])
    expect((await call(path, 'DELETE')).status).toBe(400);
  expect(await (await call('/v2/messages?messageIds=', 'DELETE')).json()).toEqual({ cancelled: 0 });
  expect(await (await call('/v2/messages', 'DELETE', {}, '{"messageIds":[]}')).json()).toEqual({
    cancelled: 0,
  });
  const older = JSON.stringify({ messageIds: [body.messageId] });
  expect(await (await call('/v2/messages', 'DELETE', {}, older)).json()).toEqual({ cancelled: 1 });
});

it('pausing a queue stops the retries of its head, which keeps its place', async () => {
  fails = (path) => path === '/paused-head';
  const enqueue = (path: string) =>
    call(`/v2/enqueue/retrying/${receiver.url}${path}`, 'POST', {
      'upstash-retries': '5',
      'upstash-retry-delay': '500',
    });
  await enqueue('/paused-head');
  await enqueue('/behind-it');
  await eventually(() => expect(at('/paused-head').length).toBeGreaterThan(0));
  expect((await call('/v2/queues/retrying/pause', 'POST')).status).toBe(200);
  // an attempt that was under way ends
  const states = () =>
    namespace.query<{ held: string }>(
      `select held from $schema.messages where queue_name = 'retrying' and finished_at is null order by seq`,
    );
  await eventually(async () => expect(await states()).toEqual([{ held: 'order' }, { held: 'order' }]));
  const attempts = at('/paused-head').length;
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  expect(at('/paused-head')).toHaveLength(attempts);
  fails = () => false;
  await call('/v2/queues/retrying/resume', 'POST');
  await eventually(() => expect(at('/behind-it')).toHaveLength(1));
  expect(at('/paused-head')).toHaveLength(attempts + 1);
  expect(at('/paused-head').at(-1)?.headers['upstash-retried']).toBe(String(attempts));
});

it('leaves keys alone under which nothing may go yet', async () => {
  const limit = { 'upstash-flow-control-key': 'quiet', 'upstash-flow-control-value': 'rate=1, period=1h' };
  for (let i = 0; i < 3; i++) await publish(gateway, `${receiver.url}/quiet`, limit);
  await eventually(async () => {
    const held = await namespace.query(
      `select 1 from $schema.messages where flow_key = 'quiet' and held = 'flow'`,
    );
    expect(held).toHaveLength(2);
  });
  const client = new pg.Client({ connectionString: backendAddress('PORTICO_DATABASE_URL') });
  await client.connect();
  const waiting = () =>
    namespace.query(
      `select query from pg_stat_activity where wait_event_type = 'Lock' and query like '%${namespace.schema}%'`,
    );
  // whoever asks for the key's room is seen waiting: the end of the one attempt may, once; the sweep, every 3 s, never
  const quietFor = async (ms: number) => {
    await client.query('begin');
    await client.query(`select from ${namespace.schema}.flow_controls where key = 'quiet' for update`);
    try {
      for (const end = performance.now() + ms; performance.now() < end; ) {
        expect(await waiting()).toEqual([]);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    } finally {
      await client.query('rollback');
    }
  };
  try {
    await eventually(() => quietFor(7_000));
  } finally {
    await client.end();
  }
});

it('publishes under a key that is locked leave connections to others', async () => {
  const flow = {
    'Upstash-Flow-Control-Key': 'locked',
    'Upstash-Flow-Control-Value': 'parallelism=1',
    // a key without messages is removed
    'Upstash-Delay': '1h',
  };
  const keyed = () => publish(gateway, `${receiver.url}/keyed`, flow);
  expect((await keyed()).status).toBe(200);
  const other = new pg.Client({ connectionString: backendAddress('PORTICO_DATABASE_URL') });
  await other.connect();
  const waiting = async () => {
    const [row] = await namespace.query<{ n: number }>(
      `select count(*)::int as n from pg_stat_activity
        where application_name = 'portico queue' and wait_event_type = 'Lock' and query like '%$schema%'`,
    );
    return row?.n ?? 0;
  };
  try {
    await other.query('begin');
    const { rowCount } = await other.query(
      `select from ${namespace.schema}.flow_controls where key = 'locked' for update`,
    );
    expect(rowCount).toBe(1);
    const all = Array.from({ length: 40 }, keyed);
    await eventually(async () => expect(await waiting()).toBeGreaterThan(2));
    expect((await publish(gateway, `${receiver.url}/plain`)).status).toBe(200);
    // each waits for 1.3 s, and those behind it then: there were some all the time
    expect(await waiting()).toBeGreaterThan(0);
    await other.query('rollback');
    for (const { status } of await Promise.all(all)) expect([200, 503]).toContain(status);
  } finally {
    await other.end();
  }
});
