import type pg from 'pg';
import { registerTypes } from 'pgvector/pg';
import { comparison } from '../../../src/services/vector/score.js';
import { EXACT_RECORDS } from '../../../src/services/vector/statements/dense-search.js';
import { backendAddress } from '../../support/environment.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller, withPostgres } from '../../support/vector.js';

const SCHEMA = 'test_vector';
const READ_ONLY = TOKENS.vectorReadOnly;

const INDEXES = [
  { name: 'cosine', dimension: 4, similarity: 'COSINE' },
  { name: 'euclidean', dimension: 4, similarity: 'EUCLIDEAN' },
  { name: 'dot', dimension: 4, similarity: 'DOT_PRODUCT' },
  { name: 'half', dimension: 2_001, similarity: 'COSINE' },
  { name: 'half-dot', dimension: 2_001, similarity: 'DOT_PRODUCT' },
  { name: 'halfvec', dimension: 4, similarity: 'COSINE', storage: 'halfvec' },
] as const;

/** Beyond what an HNSW index can have. */
const WIDE = { name: 'wide', dimension: 16_000, hnsw: { enabled: false } };

let gateway: RunningGateway;
let cosine: ReturnType<typeof vectorCaller>;
let euclidean: ReturnType<typeof vectorCaller>;
let dot: ReturnType<typeof vectorCaller>;
let half: ReturnType<typeof vectorCaller>;
let halfDot: ReturnType<typeof vectorCaller>;

interface Entry {
  id: string;
  score: number;
  vector?: number[];
  metadata?: unknown;
  data?: string;
}

/** Indexes are made in no fixed order, so their tables' numbers vary. */
const tableOf = (client: pg.Client, index: string) =>
  client
    .query<{ records: string }>(
      `select format('${SCHEMA}.records_%s', id) as records from ${SCHEMA}.indexes where name = $1`,
      [index],
    )
    .then(({ rows }) => rows[0]?.records ?? 'missing');

const entries = (result: unknown) => result as Entry[];

beforeAll(async () => {
  await dropSchema(SCHEMA);
  gateway = await startGateway({
    vector: {
      database: { schema: SCHEMA },
      indexes: [...INDEXES, WIDE].map((index) => ({
        ...index,
        path: `/${index.name}`,
        token: TOKENS.vector,
        readOnlyToken: READ_ONLY,
      })),
    },
  });
  const at = (name: (typeof INDEXES)[number]['name']) => vectorCaller(`${gateway.url}/${name}`);
  [cosine, euclidean, dot, half, halfDot] = [
    at('cosine'),
    at('euclidean'),
    at('dot'),
    at('half'),
    at('half-dot'),
  ];
});

afterAll(async () => {
  await gateway.stop();
  await dropSchema(SCHEMA);
});

test('a stored vector is found at once, with score 1 and every part as it was sent', async () => {
  const record = {
    id: 'all',
    vector: [0.1, -2.5, 1e-7, 16_777_216],
    metadata: {
      text: 'Grüße \u{1f600} "quoted" \\u0000',
      list: [1, null, { a: true }],
      ['__proto__']: { x: 1 },
    },
    data: 'line one\nline two',
  };
  expect((await cosine('/upsert/parts', record)).text).toBe('{"result":"Success"}');
  const all = { includeMetadata: true, includeVectors: true, includeData: true };
  const { result } = await cosine('/query/parts', { vector: record.vector, topK: 1, ...all });
  expect(result).toEqual([{ ...record, score: 1 }]);
  const bare = await cosine('/query/parts', { vector: record.vector, topK: 1 });
  expect(bare.text).toBe('{"result":[{"id":"all","score":1}]}');
});

test('parts that a record does not have are left out, and an upsert replaces all of them', async () => {
  const vector = [1, 2, 3, 4];
  await cosine('/upsert/replace', { id: 'r', vector, metadata: { old: true }, data: 'old' });
  await cosine('/upsert/replace', { id: 'r', vector, metadata: null, data: null });
  const all = { includeMetadata: true, includeData: true };
  expect((await cosine('/query/replace', { vector, ...all })).result).toEqual([{ id: 'r', score: 1 }]);
  await cosine('/upsert/replace', { id: 'r', vector, metadata: {} });
  expect((await cosine('/query/replace', { vector, ...all })).result).toEqual([
    { id: 'r', score: 1, metadata: {} },
  ]);
});

test('ids may be numbers and come back as text; of two with one id the last wins', async () => {
  const batch = [
    { id: 33, vector: [1, 0, 0, 0] },
    { id: 'b', vector: [0, 1, 0, 0] },
    { id: '33', vector: [0, 0, 1, 0], metadata: { last: true } },
  ];
  expect((await cosine('/upsert/ids', batch)).status).toBe(200);
  const { result } = await cosine('/query/ids', { vector: [0, 0, 1, 0], topK: 5, includeMetadata: true });
  expect(result).toEqual([
    { id: '33', score: 1, metadata: { last: true } },
    { id: 'b', score: 0.5 },
  ]);
});

test('scores follow the formula of the similarity function, best first, equal ones in insertion order', async () => {
  const batch = [
    { id: 'same', vector: [1, 0, 0, 0] },
    { id: 'opposite', vector: [-1, 0, 0, 0] },
    { id: 'right', vector: [0, 1, 0, 0] },
    { id: 'right too', vector: [0, 0, 1, 0] },
    { id: 'twice', vector: [2, 0, 0, 0] },
  ];
  const ask = { vector: [1, 0, 0, 0] };
  const scores = async (index: typeof cosine) => {
    expect((await index('/upsert/scores', batch)).status).toBe(200);
    const { result } = await index('/query/scores', ask);
    return entries(result).map(({ id, score }) => [id, score]);
  };
  const third = Math.fround(1 / 3);
  const close = (score: number) => expect.closeTo(score, 7) as number;
  expect(await scores(cosine)).toEqual([
    ['same', 1],
    ['twice', 1],
    ['right', 0.5],
    ['right too', 0.5],
    ['opposite', 0],
  ]);
  expect(await scores(euclidean)).toEqual([
    ['same', 1],
    ['twice', 0.5],
    ['right', close(third)],
    ['right too', close(third)],
    ['opposite', close(0.2)],
  ]);
  expect(await scores(dot)).toEqual([
    ['twice', 1.5],
    ['same', 1],
    ['right', 0.5],
    ['right too', 0.5],
    ['opposite', 0],
  ]);
});

test('an identical vector scores exactly 1 whatever its components', async () => {
  const vectors = Array.from({ length: 50 }, () => Array.from({ length: 4 }, () => Math.random() * 20 - 10));
  const batch = vectors.map((vector, i) => ({ id: i, vector }));
  for (const index of [cosine, euclidean]) {
    await index('/upsert/ones', batch);
    const replies = await Promise.all(vectors.map((vector) => index('/query/ones', { vector, topK: 1 })));
    expect(replies.map(({ result }) => entries(result)[0]?.score)).toEqual(vectors.map(() => 1));
  }
});

test('above 2,000 dimensions the index works on half precision and scores stay exact', async () => {
  const random = () => Array.from({ length: 2_001 }, () => Math.random() - 0.5);
  const sizes = [1, 1e-9, 1e9];
  const vectors = sizes.map((size) => random().map((x) => x * size));
  for (const index of [half, halfDot]) {
    const batch = vectors.map((vector, i) => ({ id: i, vector }));
    const stored = index === half ? batch : batch.slice(0, 2);
    expect((await index('/upsert', stored)).status).toBe(200);
  }
  for (const [i, vector] of vectors.entries()) {
    const { result } = await half('/query', { vector, topK: 2 });
    expect(entries(result)[0]).toEqual({ id: String(i), score: 1 });
    expect(entries(result)).toHaveLength(2);
  }
  const refused = await halfDot('/upsert', { id: 'x', vector: vectors[2] });
  expect([refused.status, refused.error]).toEqual([422, expect.stringMatching(/at most 65504 in size/)]);
});

test('up to 16,000 dimensions are compared without an HNSW index', async () => {
  const wide = vectorCaller(`${gateway.url}/wide`);
  const vectors = Array.from({ length: 3 }, () => Array.from({ length: 16_000 }, () => Math.random() - 0.5));
  const batch = vectors.map((vector, i) => ({ id: i, vector }));
  expect((await wide('/upsert', batch)).result).toBe('Success');
  for (const [i, vector] of vectors.entries()) {
    const { result } = await wide('/query', { vector, topK: 2 });
    expect(entries(result)).toEqual([{ id: String(i), score: 1 }, expect.anything()]);
  }
});

test('stored as halfvec, components are float16 in half the space, and an identical vector still scores 1', async () => {
  const index = vectorCaller(`${gateway.url}/halfvec`);
  const vectors = Array.from({ length: 30 }, () => Array.from({ length: 4 }, () => Math.random() * 20 - 10));
  vectors.push([65_504, 1, 1, 1], [0, 0, 0, -6e-8]);
  const records = vectors.map((vector, i) => ({ id: `${i}`, vector }));
  expect((await index('/upsert', [...records, { id: 'rounded', vector: [0.1, 2, 3, 4.0001] }])).status).toBe(
    200,
  );
  for (const { id, vector } of records) {
    const { result } = await index('/query', { vector, topK: 1 });
    expect(entries(result)).toEqual([{ id, score: 1 }]);
  }
  const [rounded] = (await index('/fetch', { ids: ['rounded'], includeVectors: true })).result as [Entry];
  expect(rounded.vector).toEqual([0.099975586, 2, 3, 4]);
  const column = await withPostgres(async (client) => {
    const table = await tableOf(client, 'halfvec');
    return client.query<{ bytes: number }>(`select pg_column_size(vec) as bytes from ${table} limit 1`);
  });
  expect(column.rows[0]?.bytes).toBeLessThan(20);
  for (const [vector, message] of [
    [[65_505, 1, 1, 1], /at most 65504 in size/],
    [[2e-8, 0, 1e-9, 0], /length 0/],
  ] as const) {
    for (const path of ['/upsert', '/query']) {
      const { status, error } = await index(path, path === '/upsert' ? { id: 'x', vector } : { vector });
      expect([status, error]).toEqual([422, expect.stringMatching(message)]);
    }
  }
});

test.each(INDEXES)('HNSW serves the order of $name', async (index) => {
  const { name, dimension, similarity } = index;
  const storage = 'storage' in index ? index.storage : 'vector';
  const plan = await withPostgres(async (client) => {
    await client.query('set enable_sort = off');
    const { nearestFirst, indexed } = comparison(similarity, dimension, storage);
    const table = await tableOf(client, name);
    await client.query('begin');
    await client.query(
      `create index by_hand on ${table} using hnsw (${indexed('vec')}) where namespace_id = 1`,
    );
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      `explain (costs off) select id from ${table} where namespace_id = 1
       order by ${nearestFirst('vec', '$1::vector')} limit 10`,
      [JSON.stringify(new Array(dimension).fill(1))],
    );
    await client.query('rollback');
    return rows.map((row) => row['QUERY PLAN'].slice(0, 80)).join('\n');
  });
  expect(plan).toMatch(/Index Scan using by_hand/);
});

test('topK is 10 by default, and what is asked for beyond the records is no error', async () => {
  await cosine(
    '/upsert/top',
    Array.from({ length: 30 }, (_, i) => ({ id: i, vector: [1, i, 0, 0] })),
  );
  expect(entries((await cosine('/query/top', { vector: [1, 0, 0, 0] })).result)).toHaveLength(10);
  const many = await cosine('/query/top', { vector: [1, 0, 0, 0], topK: 1_000 });
  expect(entries(many.result).map(({ id }) => id)).toEqual(Array.from({ length: 30 }, (_, i) => String(i)));
});

test('a namespace sees its own records only; one that does not exist is empty', async () => {
  const vector = [1, 1, 1, 1];
  await cosine('/upsert/a%20b/c', { id: 'in', vector });
  await cosine('/upsert', { id: 'default', vector });
  const ids = async (path: string) => entries((await cosine(path, { vector })).result).map(({ id }) => id);
  expect(await ids('/query/a%20b/c')).toEqual(['in']);
  expect(await ids('/query')).toEqual(['default']);
  expect(await ids('/query/nobody')).toEqual([]);
});

test('a large namespace gets an HNSW index of its own; topK is filled even when HNSW gives up before', async () => {
  const random = () => Array.from({ length: 4 }, () => Math.random() - 0.5);
  const load = async (path: string, count: number) => {
    const batch = Array.from({ length: count }, (_, i) => ({ id: i, vector: random() }));
    expect((await euclidean(path, batch)).status).toBe(200);
  };
  const hnswIndexes = () =>
    withPostgres(async (client) => {
      const { rows } = await client.query<{ name: string; space: string; scans: string }>(
        `select i.indexrelname as name, n.name as space, i.idx_scan as scans from pg_stat_user_indexes i
         join ${SCHEMA}.namespaces n on i.indexrelname ~ ('_ns' || n.id || '_') and n.hnsw
         where i.schemaname = $1 and i.indexrelname ~ '^hnsw_' order by n.name`,
        [SCHEMA],
      );
      return rows;
    });
  await load('/upsert/far', EXACT_RECORDS + 1);
  await load('/upsert/near', EXACT_RECORDS + 1);
  await load('/upsert/small', EXACT_RECORDS);
  await eventually(async () =>
    expect((await hnswIndexes()).map(({ space }) => space)).toEqual(['far', 'near']),
  );
  const asked = [
    ['/query/near', 10],
    ['/query/near', 200],
    ['/query/far', 10],
    ['/query/small', 10],
  ] as const;
  for (const options of ['-c enable_sort=off', '-c enable_sort=off -c hnsw.max_scan_tuples=1']) {
    // so few rows are sorted by default; this is what the planner does with many
    const url = new URL(backendAddress('PORTICO_DATABASE_URL'));
    url.searchParams.set('options', options);
    const document = {
      database: { schema: SCHEMA },
      indexes: [{ name: 'euclidean', dimension: 4, similarity: 'EUCLIDEAN', token: TOKENS.vector }],
    };
    const searching = await startGateway({ vector: document }, { PORTICO_DATABASE_URL: url.href });
    try {
      const index = vectorCaller(`${searching.url}/vector`);
      for (const [path, topK] of [...asked, ...asked]) {
        const { result } = await index(path, { vector: random(), topK });
        const scores = entries(result).map(({ score }) => score);
        expect(scores).toHaveLength(topK);
        expect(scores).toEqual([...scores].sort((a, b) => b - a));
      }
    } finally {
      await searching.stop();
    }
  }
  // Postgres reports a connection's statistics when it ends
  await eventually(async () => {
    for (const { scans } of await hnswIndexes()) expect(Number(scans)).toBeGreaterThan(0);
  });
  // a namespace that is gone leaves no index
  expect((await euclidean('/delete-namespace/far', [])).status).toBe(200);
  await eventually(async () => {
    const names = await withPostgres((client) =>
      client.query("select 1 from pg_class where relname ~ '^hnsw_.*' and relnamespace = $1::regnamespace", [
        SCHEMA,
      ]),
    );
    expect(names.rowCount).toBe(1);
  });
});

test('info tells counts of every namespace without a wait, and the size that Postgres tells', async () => {
  const infoOf = async () => (await dot('/info')).result as Record<string, never> & { indexSize: number };
  const before = await infoOf();
  await dot('/upsert/counted', [
    { id: 1, vector: [1, 1, 1, 1] },
    { id: 2, vector: [1, 1, 1, 1] },
    { id: 1, vector: [2, 1, 1, 1] },
  ]);
  await dot('/upsert/counted', [
    { id: 2, vector: [1, 1, 1, 1] },
    { id: 3, vector: [1, 1, 1, 1] },
  ]);
  const { indexSize, ...info } = await infoOf();
  expect(info).toEqual({
    vectorCount: Number(before.vectorCount) + 3,
    pendingVectorCount: 0,
    dimension: 4,
    similarityFunction: 'DOT_PRODUCT',
    indexType: 'DENSE',
    denseIndex: { dimension: 4, similarityFunction: 'DOT_PRODUCT', embeddingModel: '' },
    namespaces: {
      '': { vectorCount: 0, pendingVectorCount: 0 },
      scores: { vectorCount: 5, pendingVectorCount: 0 },
      counted: { vectorCount: 3, pendingVectorCount: 0 },
    },
  });
  const size = await withPostgres(async (client) => {
    const { rows } = await client.query<{ bytes: string }>(
      'select pg_total_relation_size($1::regclass) as bytes',
      [await tableOf(client, 'dot')],
    );
    return Number(rows[0]?.bytes);
  });
  expect(indexSize).toBe(size);
});

test("the table holds what pgvector's own client reads, numbered from 0 without gaps", async () => {
  const vector = (x: number) => [x, 0.1, 0.2, 0.3];
  await cosine('/upsert/rows', [
    { id: 'a', vector: vector(1) },
    { id: 'b', vector: vector(2) },
  ]);
  await cosine('/upsert/rows', [
    { id: 'c', vector: vector(3) },
    { id: 'a', vector: vector(4) },
    { id: 'd', vector: vector(5) },
  ]);
  const rows = await withPostgres(async (client) => {
    await registerTypes(client);
    const { rows } = await client.query<{ row: string; id: string; vec: number[] }>(
      `select r.row, r.id, r.vec from ${await tableOf(client, 'cosine')} r join ${SCHEMA}.namespaces n on n.id = r.namespace_id
       where n.name = 'rows' order by r.row`,
    );
    return rows;
  });
  expect(rows.map(({ row, id }) => [row, id])).toEqual([
    ['0', 'a'],
    ['1', 'b'],
    ['2', 'c'],
    ['3', 'd'],
  ]);
  expect(rows.map(({ vec }) => vec.map(Math.fround))).toEqual(
    [4, 2, 3, 5].map((x) => vector(x).map(Math.fround)),
  );
});

test('concurrent upserts of the same records lose nothing and number each record once', async () => {
  const batch = (shift: number) =>
    Array.from({ length: 40 }, (_, i) => ({ id: (i * 7 + shift) % 60, vector: [1, i, shift, 1] }));
  const replies = await Promise.all(Array.from({ length: 20 }, (_, i) => cosine('/upsert/rush', batch(i))));
  expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200));
  const { result } = await cosine('/info');
  expect((result as { namespaces: Record<string, unknown> }).namespaces.rush).toEqual({
    vectorCount: 60,
    pendingVectorCount: 0,
  });
  const found = await cosine('/query/rush', { vector: [1, 1, 1, 1], topK: 100 });
  expect(new Set(entries(found.result).map(({ id }) => id)).size).toBe(60);
});

test('every method that clients send is taken, others are not; a read-only token reads', async () => {
  const vector = [1, 2, 3, 4];
  for (const method of ['POST', 'PUT', 'DELETE']) {
    expect((await cosine('/upsert/methods', { id: 1, vector }, { method })).status).toBe(200);
    expect(entries((await cosine('/query/methods', { vector }, { method })).result)).toHaveLength(1);
  }
  expect((await cosine('/info', undefined, { method: 'GET' })).status).toBe(200);
  expect((await cosine('/info', 'null')).status).toBe(200);
  expect((await cosine('/info', [], { headers: { 'content-type': 'text/plain' } })).status).toBe(200);
  expect((await cosine('/info', undefined, { method: 'PATCH' })).status).toBe(405);
  const token = READ_ONLY;
  expect((await cosine('/info', undefined, { token })).status).toBe(200);
  expect((await cosine('/query', { vector }, { token })).status).toBe(200);
  const refused = await cosine('/upsert', { id: 1, vector }, { token });
  expect([refused.status, refused.error]).toEqual([403, 'This token may only read.']);
  const wrong = await cosine('/info', undefined, { token: 'wrong' });
  expect(JSON.parse(wrong.text)).toEqual({ error: 'Unauthorized: Invalid auth token', status: 401 });
});
