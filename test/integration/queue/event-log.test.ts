import { randomBytes } from 'node:crypto';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { publish, queueNamespace, type Receiver, startReceiver } from '../../support/queue/queue.js';
import { TOKENS } from '../../support/tokens.js';

const namespace = queueNamespace();
let gateway: RunningGateway;
let receiver: Receiver;

const start = async () => {
  gateway = await startGateway({ queue: namespace.config });
  await eventually(async () => expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200));
};
beforeAll(async () => {
  receiver = await startReceiver();
  await start();
});
afterAll(async () => {
  await gateway?.stop();
  await receiver?.stop();
  await namespace.remove();
});

interface Page {
  readonly events: { messageId: string; state: string; body?: string; time: number }[];
  readonly cursor?: string;
}

async function read(path: string): Promise<unknown> {
  const reply = await fetch(`${gateway.url}/queue${path}`, {
    headers: { authorization: `Bearer ${TOKENS.queue}` },
  });
  expect(reply.status).toBe(200);
  return reply.json();
}

const page = async (query: string) => (await read(`/v2/events?${query}`)) as Page;

async function all(query: string): Promise<Page['events']> {
  const found: Page['events'] = [];
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const next: Page = await page(`${query}&cursor=${cursor}`);
    found.push(...next.events);
    cursor = next.cursor;
  }
  return found;
}

it('finds few entries among very many by any filter, in both orders', async () => {
  const { body } = await publish(gateway, `${receiver.url}/needle`, { 'upstash-label': 'needle' });
  await eventually(async () => expect(await all(`messageId=${body.messageId}`)).toHaveLength(3));
  const needle = ['CREATED', 'ACTIVE', 'DELIVERED'];
  for (const sign of ['-', '+'])
    await namespace.query(
      `with hay as (
        insert into $schema.messages (id, state, prefix, url, method, headers, body, max_retries, not_before, created_at, due_at,
          sweep_at, finished_at)
        select 'hay${sign}' || i, 'DELIVERED', 'Upstash', 'https://example.com/' || i, 'POST', '{}', '', 0, 0, 0, now(), now(), now()
        from generate_series(1, 30000) i returning id
      )
      insert into $schema.events (message_id, state, at)
      select id, 'CREATED', now() ${sign} row_number() over () * interval '1 millisecond' from hay`,
    );
  for (const filter of ['label=needle', `host=127.0.0.1:${receiver.port}`, 'path=/needle']) {
    const newest = await all(filter);
    expect(newest.map(({ state }) => state)).toEqual([...needle].reverse());
    expect((await all(`${filter}&order=earliestFirst`)).map(({ state }) => state)).toEqual(needle);
    const times = newest.map(({ time }) => time);
    const between = `fromDate=${Math.min(...times)}&toDate=${Math.max(...times)}`;
    expect(await all(`${filter}&${between}`)).toEqual(newest);
    expect(await all(`${filter}&fromDate=${Math.max(...times) + 1}`)).toEqual([]);
  }
  expect(await all('label=nothing')).toEqual([]);
  const everything = await all('count=1000');
  expect(new Set(everything.map(({ messageId }) => messageId)).size).toBe(60_001);
  expect(everything).toHaveLength(60_003);
});

it('shows neither body nor headers of a redacted message in those of its callback, which get them', async () => {
  const [callback, secret] = [`${receiver.url}/redacted-callback`, 'not to be seen'];
  const headers = {
    'upstash-callback': callback,
    'upstash-redact-fields': 'body',
    'upstash-label': 'redacted',
  };
  await publish(gateway, `${receiver.url}/redacted`, headers, secret);
  const got = () => receiver.received.find(({ url }) => url === '/redacted-callback');
  await eventually(() => expect(got()).toBeDefined());
  const { sourceBody } = JSON.parse(String(got()?.body)) as { sourceBody: string };
  expect(Buffer.from(sourceBody, 'base64').toString()).toBe(secret);
  await eventually(async () => expect(await all('label=redacted')).toHaveLength(6));
  for (const { body } of await all('label=redacted')) expect(body).toMatch(/^REDACTED:/);
});

it.each([
  ['header[X-Secret]', 'open'],
  ['header', expect.stringMatching(/^REDACTED:/)],
])('shows the headers of callbacks, which get them, as %s of their message says', async (fields, others) => {
  const label = fields.replace(/\W/g, '');
  const [hidden, secret] = [[expect.stringMatching(/^REDACTED:/)], 'not to be seen'];
  const headers = {
    'upstash-callback': `${receiver.url}/${label}-done`,
    'upstash-callback-forward-x-secret': secret,
    'upstash-callback-forward-x-open': 'open',
    'upstash-failure-callback': `${receiver.url}/${label}-failed`,
    'upstash-failure-callback-forward-x-secret': secret,
    'upstash-redact-fields': fields,
    'upstash-label': label,
  };
  const { body } = await publish(gateway, `${receiver.url}/${label}`, headers);
  await eventually(() =>
    expect(receiver.received.find(({ url }) => url === `/${label}-done`)?.headers).toMatchObject({
      'x-secret': secret,
      'x-open': 'open',
    }),
  );
  await eventually(async () => expect(await all(`label=${label}`)).toHaveLength(6));
  expect(JSON.stringify(await all(`label=${label}`))).not.toContain(secret);
  const [own] = await all(`messageId=${body.messageId}`);
  expect(own).toMatchObject({
    callbackHeaders: { 'X-Secret': hidden, 'X-Open': [others] },
    failureCallbackHeaders: { 'X-Secret': hidden },
  });
  const reply = await fetch(`${gateway.url}/queue/v2/messages/${body.messageId}`, {
    headers: { authorization: `Bearer ${TOKENS.queue}` },
  });
  expect(await reply.json()).toMatchObject({ callbackHeader: { 'X-Secret': hidden, 'X-Open': [others] } });
});

it("goes on and keeps all entries when they came before their day's table was made", async () => {
  const today = new Date().toISOString().slice(0, 10).replaceAll('-', '');
  await namespace.query(`drop table $schema.events_${today}`);
  const { body } = await publish(gateway, `${receiver.url}/early`);
  const entries = () => all(`messageId=${body.messageId}`);
  await eventually(async () => expect(await entries()).toHaveLength(3));
  const before = await entries();
  await gateway.stop();
  await start();
  expect(await entries()).toEqual(before);
});

it('stores a large response once, in the dead letter, and its beginning for each attempt in the log', async () => {
  const noise = randomBytes(500_000);
  const large = Buffer.concat([noise, Buffer.alloc(500_000, 'text ')]);
  const failing = await startReceiver((_, response) => {
    response.writeHead(500, { 'X-Long': 'x'.repeat(10_000), 'X-Longer': 'y'.repeat(10_000) }).end(large);
  });
  try {
    const headers = { 'upstash-retries': '3', 'upstash-retry-delay': '10' };
    const { body } = await publish(gateway, failing.url, headers, 'tiny');
    const letter = await eventually(async () => {
      const { messages } = (await read(`/v2/dlq?messageId=${body.messageId}`)) as {
        messages: { responseBodyBase64: string; responseHeader: object }[];
      };
      expect(messages).toHaveLength(1);
      return messages[0];
    });
    expect(Buffer.from(letter?.responseBodyBase64 ?? '', 'base64').equals(large)).toBe(true);
    expect(Object.keys(letter?.responseHeader ?? {})).toEqual(expect.arrayContaining(['X-Long', 'X-Longer']));
    const errors = (await all(`messageId=${body.messageId}&state=ERROR`)) as unknown as {
      responseBody: string;
      responseHeader: object;
    }[];
    expect(errors).toHaveLength(4);
    for (const { responseBody, responseHeader } of errors) {
      expect(Buffer.from(responseBody, 'base64').equals(large.subarray(0, 16_384))).toBe(true);
      expect(Object.keys(responseHeader)).toContain('X-Long');
      expect(Object.keys(responseHeader)).not.toContain('X-Longer');
    }
    const [stored] = await namespace.query<{ bytes: number; way: string }>(
      `select (select sum(pg_column_size(e.*)) from $schema.events e where message_id = m.id)::int
          + pg_column_size(m.failure_body) as bytes, pg_column_compression(m.failure_body) as way
        from $schema.messages m where id = $1`,
      [body.messageId],
    );
    // half of it is text
    expect(stored?.way).toBe('lz4');
    expect(stored?.bytes).toBeLessThan(noise.length + 5 * 2 * 16_384);
  } finally {
    await failing.stop();
  }
});
