import { Readable } from 'node:stream';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller, withPostgres } from '../../support/vector.js';

const SCHEMA = 'test_vector_ndjson';
const NDJSON = 'application/x-ndjson';

let gateway: RunningGateway;
let index: ReturnType<typeof vectorCaller>;
let url: string;

beforeAll(async () => {
  await dropSchema(SCHEMA);
  gateway = await startGateway({
    http: { requestTimeoutMs: 4_000, bodyIdleTimeoutMs: 3_000 },
    vector: {
      database: { schema: SCHEMA, statementTimeoutMs: 10_000 },
      indexes: [{ dimension: 3, token: TOKENS.vector, bodyLimit: 10_000, timeoutMs: 20_000 }],
    },
  });
  url = `${gateway.url}/vector`;
  index = vectorCaller(url);
});

afterAll(async () => {
  await gateway.stop();
  await dropSchema(SCHEMA);
});

const authorization = `Bearer ${TOKENS.vector}`;

/** Sends `body` as a stream of lines. */
async function bulk(path: string, body: string | Iterable<string> | AsyncIterable<string>) {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { authorization, 'content-type': NDJSON },
    body: typeof body === 'string' ? body : Readable.toWeb(Readable.from(body, { objectMode: false })),
    duplex: 'half',
    signal: AbortSignal.timeout(120_000),
  } as RequestInit);
  const json = (await response.json()) as { result?: unknown; error?: string; status?: number };
  return { status: response.status, ...json };
}

async function exported(path: string, body: object = {}): Promise<Record<string, unknown>[]> {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { authorization, accept: NDJSON },
    body: JSON.stringify(body),
  });
  expect([response.status, response.headers.get('content-type')]).toEqual([200, NDJSON]);
  const text = await response.text();
  expect(text === '' || text.endsWith('\n')).toBe(true);
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

const record = (i: number) => ({ id: `r${i}`, vector: [1, i, 0.5], metadata: { i }, data: `text ${i}` });
const line = (i: number) => `${JSON.stringify(record(i))}\n`;
const lines = (count: number) => Array.from({ length: count }, (_, i) => line(i)).join('');
const countOf = async (namespace: string) => {
  const { result } = await index('/info');
  return (
    (result as { namespaces: Record<string, { vectorCount: number }> }).namespaces[namespace]?.vectorCount ??
    0
  );
};
const all = { includeVectors: true, includeMetadata: true, includeData: true };

test('what goes in as lines comes out as lines, far beyond the limit of a body', async () => {
  const count = 3_456;
  expect(await bulk('/upsert/roundtrip', lines(count))).toEqual({ status: 200, result: 'Success' });
  const out = await exported('/range/roundtrip', all);
  expect(out).toEqual(Array.from({ length: count }, (_, i) => record(i)));
  const copy = out.map((one) => JSON.stringify(one)).join('\r\n');
  expect((await bulk('/upsert/copy', copy)).status).toBe(200);
  expect(await exported('/range/copy', all)).toEqual(out);
});

test('an export begins at the cursor, ends at the limit, and knows prefixes', async () => {
  await bulk('/upsert/part', lines(500));
  const ids = async (body: object) => (await exported('/range/part', body)).map(({ id }) => id);
  expect(await ids({ cursor: '10', limit: 3 })).toEqual(['r10', 'r11', 'r12']);
  expect(await ids({ cursor: '498' })).toEqual(['r498', 'r499']);
  expect(await ids({ limit: 450 })).toHaveLength(450);
  expect(await ids({ prefix: 'r49' })).toHaveLength(11);
  expect(await exported('/range/nowhere')).toEqual([]);
  const refused = await index('/range/part', { cursor: 'x' }, { headers: { accept: NDJSON } });
  expect(refused.status).toBe(400);
});

test('lines may be blank, split anywhere, and without an end; the last of two with one id wins', async () => {
  const text = `\n  \n${line(1)}${line(2)}\r\n${JSON.stringify({ ...record(1), data: 'ü\u{1f600}' })}`;
  const bytes = Buffer.from(text);
  const pieces = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, i) =>
    bytes.subarray(7 * i, 7 * i + 7),
  );
  expect((await bulk('/upsert/odd', pieces as unknown as Iterable<string>)).status).toBe(200);
  const out = await exported('/range/odd', { includeData: true });
  expect(out).toEqual([
    { id: 'r2', data: 'text 2' },
    { id: 'r1', data: 'ü\u{1f600}' },
  ]);
  expect((await bulk('/upsert/odd', '')).status).toBe(200);
});

test.each<[string, string, number, string]>([
  ['no JSON', '{"id":', 400, 'line 1235: not valid JSON'],
  ['no record', '5', 400, 'line 1235: '],
  ['an unknown key', '{"id":"x","vector":[1,2,3],"metdata":{}}', 400, 'line 1235: '],
  [
    'another dimension',
    '{"id":"x","vector":[1,2]}',
    422,
    'line 1235: Invalid vector dimension: 2, expected: 3',
  ],
  ['no number', '{"id":"x","vector":[1,null,2]}', 400, 'line 1235.vector.1: expected a number, got null'],
  ['no vector', '{"id":"x"}', 422, 'line 1235.vector: every record of this index needs a vector'],
  ['large metadata', `{"id":"x","vector":[1,2,3],"metadata":{"a":"\\u0000"}}`, 422, 'line 1235.metadata: '],
  [
    'a line that is too long',
    `{"id":"${'x'.repeat(10_001)}"}`,
    413,
    'line 1235: longer than the limit of 10000 bytes for one line',
  ],
])('a line with %s is named, and all before it are stored', async (name, wrong, status, message) => {
  const namespace = `stop-${name.replaceAll(' ', '-')}`;
  const body = `${lines(1_234)}${wrong}\n${line(5_000)}${line(5_001)}`;
  const reply = await bulk(`/upsert/${namespace}`, body);
  expect([reply.status, reply.error]).toEqual([status, expect.stringContaining(message)]);
  expect(reply.error).toMatch(/\(the lines up to 1234 are stored\)$/);
  expect(await countOf(namespace)).toBe(1_234);
});

test('a fault in the first line leaves nothing; a read-only or wrong token is told before the body is read', async () => {
  const first = await bulk('/upsert/first', `{}\n${lines(5)}`);
  expect([first.status, first.error]).toEqual([
    400,
    expect.stringMatching(/^line 1: .*\(nothing is stored\)$/),
  ]);
  expect(await countOf('first')).toBe(0);
  const response = await fetch(`${url}/upsert`, {
    method: 'POST',
    headers: { authorization: 'Bearer wrong', 'content-type': NDJSON },
    body: lines(10),
  });
  expect(response.status).toBe(401);
});

test('the body is read no faster than it is stored, and may take longer than other requests', async () => {
  let sent = 0;
  const text = 'x'.repeat(5_000);
  const big = (i: number) => `${JSON.stringify({ ...record(i), data: text })}\n`;
  async function* slowly() {
    for (let i = 0; i < 8_000; i++) {
      sent++;
      yield big(i % 500);
    }
  }
  const lock = await withPostgres(async (client) => {
    await index('/upsert/slow', record(0));
    await client.query('begin');
    await client.query(`select 1 from ${SCHEMA}.namespaces where name = 'slow' for update`);
    const reply = bulk('/upsert/slow', slowly());
    // the first batch waits for the lock: what follows must wait in the client
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const sentMeanwhile = sent;
    await client.query('rollback');
    return { reply: await reply, sentMeanwhile };
  });
  expect(lock.reply).toEqual({ status: 200, result: 'Success' });
  expect(lock.sentMeanwhile).toBeLessThan(5_000);
  expect(await countOf('slow')).toBe(500);
});

test('a body that pauses is not cut by the limit for whole requests, one that falls silent is', async () => {
  async function* paced(pauses: number[]) {
    for (const [i, pause] of pauses.entries()) {
      yield line(i);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    yield line(99);
  }
  expect(await bulk('/upsert/paced', paced([1_500, 1_500, 1_500]))).toEqual({
    status: 200,
    result: 'Success',
  });
  expect(await countOf('paced')).toBe(4);
  const silent = await bulk('/upsert/silent', paced([100, 8_000]));
  expect(silent.status).toBe(408);
});

test('a client that leaves in the middle of an export or an import does no harm', async () => {
  await bulk('/upsert/leaving', lines(5_000));
  const controller = new AbortController();
  const response = await fetch(`${url}/range/leaving`, {
    method: 'POST',
    headers: { authorization, accept: NDJSON },
    body: JSON.stringify(all),
    signal: controller.signal,
  });
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  controller.abort();
  await expect(reader.read()).rejects.toThrow();
  async function* endless() {
    for (let i = 0; ; i++) {
      if (i === 3_000) throw new Error('the client breaks off');
      yield line(i);
    }
  }
  await expect(bulk('/upsert/broken', endless())).rejects.toThrow();
  expect((await index('/query/leaving', { vector: [1, 1, 1], topK: 1 })).status).toBe(200);
});
