import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { watchLoop } from '../../support/loop-watch.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller, withPostgres } from '../../support/vector.js';

const SCHEMA = 'test_vector_finding';
let gateway: RunningGateway;
let index: ReturnType<typeof vectorCaller>;
let hybrid: ReturnType<typeof vectorCaller>;

const METADATA = [
  { genre: 'drama', year: 1990, tags: ['a', 'b'], 'odd key.[x]': { 'in"ner': 1 } },
  { genre: 'drama', year: 2001, tags: ['b'], nested: { deep: [{ v: 1 }, { v: 2 }] } },
  { genre: 'noir', year: 1950, tags: [], seen: true },
  { genre: 'comedy', year: 2020 },
  {},
];

beforeAll(async () => {
  await dropSchema(SCHEMA);
  const common = { dimension: 2, token: TOKENS.vector, maxPage: 100 };
  gateway = await startGateway({
    vector: {
      database: { schema: SCHEMA },
      indexes: [
        { ...common, name: 'main', path: '/main' },
        { ...common, name: 'hybrid', path: '/hybrid', type: 'HYBRID' },
      ],
    },
  });
  index = vectorCaller(`${gateway.url}/main`);
  hybrid = vectorCaller(`${gateway.url}/hybrid`);
  await index(
    '/upsert',
    METADATA.map((metadata, i) => ({ id: `film-${i}`, vector: [1, i], metadata })),
  );
});
afterAll(async () => {
  await gateway?.stop();
  await dropSchema(SCHEMA);
});

const ids = (result: unknown) =>
  (result as { id: string }[]).map(({ id }) => id.replace('film-', '')).join('');
const found = async (filter: unknown) =>
  [...ids((await index('/query', { vector: [1, 0], topK: 10, filter })).result)].sort().join('');

describe('a filter as JSON', () => {
  it.each([
    [{ genre: 'drama' }, '01'],
    [{ year: { $gte: 1990, $lt: 2020 } }, '01'],
    [{ genre: { $ne: 'drama' } }, '23'],
    [{ genre: { $in: ['noir', 'comedy'] } }, '23'],
    [{ genre: { $nin: ['noir', 'comedy'] } }, '01'],
    [{ tags: { $contains: 'b' } }, '01'],
    [{ genre: { $glob: '*o*' } }, '23'],
    [{ seen: { $exists: true } }, '2'],
    [{ genre: { $exists: false } }, '4'],
    [{ seen: true }, '2'],
    [{ $or: [{ year: 1950 }, { $and: [{ genre: 'drama' }, { year: { $gt: 2000 } }] }] }, '12'],
    [{ genre: 'drama', year: 2001 }, '1'],
    [{ 'nested.deep[1].v': 2 }, '1'],
    [{ '"odd key.[x]"."in\\"ner"': 1 }, '0'],
  ])('%j finds %s', async (filter, expected) => {
    expect(await found(filter)).toBe(expected);
  });

  it.each([
    [{}, 'filter: expected a field, $and or $or'],
    [{ $not: 1 }, 'filter.$not: expected a field, $and or $or'],
    [{ $and: [] }, 'filter.$and: expected an array of conditions'],
    [{ $or: [1] }, 'filter.$or[0]: expected an object'],
    [{ year: { $gte: 'x' } }, 'filter.year.$gte: expected a number'],
    [{ year: { $near: 1 } }, 'filter.year.$near: expected $eq'],
    [{ year: null }, 'filter.year: expected a text, a number'],
    [{ year: {} }, 'filter.year: expected $eq'],
    [{ year: { $in: [] } }, 'filter.year.$in: expected an array of values'],
    [{ 'a..b': 1 }, 'expected a key'],
    [{ 'a\u0000': 1 }, 'U+0000'],
    [{ a: '\ud800' }, 'lone surrogates'],
    [['drama'], 'expected text or an object'],
  ])('%j is refused with its place', async (filter, words) => {
    const reply = await index('/query', { vector: [1, 0], topK: 1, filter });
    expect([reply.status, reply.error]).toEqual([400, expect.stringContaining(words)]);
  });

  it('is bounded in depth and in number', async () => {
    let deep: unknown = { a: 1 };
    for (let i = 0; i < 70; i++) deep = { $and: [deep] };
    expect((await index('/query', { vector: [1, 0], filter: deep })).error).toContain('in each other');
    const many = { a: { $in: Array.from({ length: 2_000 }, (_, i) => i) } };
    expect((await index('/query', { vector: [1, 0], filter: many })).error).toContain('at most 1000');
  });
});

it.each([
  [`"genre" = 'drama'`, '01'],
  [`"odd key.[x]"."in\\"ner" = 1`, '0'],
  [`'odd key.[x]'.'in"ner' < 2`, '0'],
  [`HAS FIELD "odd key.[x]"`, '0'],
  [`nested."deep"[0].v = 1`, '1'],
  [`nested.'deep'[#-1].v = 2 AND "year" > 2000`, '1'],
])('keys in quotes: %s', async (filter, expected) => {
  expect(await found(filter)).toBe(expected);
});

it('leaves out what is not near enough', async () => {
  await index('/upsert/near', [
    { id: 'same', vector: [1, 0] },
    { id: 'across', vector: [0, 1] },
    { id: 'against', vector: [-1, 0] },
  ]);
  const query = async (minScore: number) =>
    (await index('/query/near', { vector: [1, 0], topK: 3, minScore })).result as { id: string }[];
  expect((await query(0.4)).map(({ id }) => id)).toEqual(['same', 'across']);
  expect((await query(0.9)).map(({ id }) => id)).toEqual(['same']);
  expect(await query(1.1)).toEqual([]);
  expect((await query(0)).length).toBe(3);
});

it('says how a query was answered, where it is asked to', async () => {
  const plan = async (body: unknown, path = '/query') => {
    const { headers, status } = await index(path, body);
    expect(status).toBe(200);
    return headers.get('vector-plan');
  };
  expect(await plan({ vector: [1, 0] })).toBeNull();
  expect(await plan({ vector: [1, 0], explain: true })).toBe('exact');
  expect(await plan([{ vector: [1, 0], explain: true }, { vector: [1, 1] }])).toBe('exact, exact');
  const { headers } = await hybrid('/query', {
    vector: [1, 0],
    sparseVector: { indices: [1], values: [1] },
    explain: true,
  });
  expect(headers.get('vector-plan')).toBe('hybrid');
  const info = (await index('/info?explain')).result as { namespaces: Record<string, { graph: string }> };
  expect(info.namespaces['']?.graph).toBe('none');
});

describe('a query by id', () => {
  it('finds what is near to the record, and not the record', async () => {
    const near = (await index('/query', { id: 'film-2', topK: 2 })).result as { id: string; score: number }[];
    const byVector = (await index('/query', { vector: [1, 2], topK: 3 })).result as typeof near;
    expect(near).toEqual(byVector.filter(({ id }) => id !== 'film-2'));
    const several = await index('/query', [
      { id: 'film-0', topK: 1 },
      { vector: [1, 4], topK: 1 },
    ]);
    expect((several.result as { id: string }[][]).map(([first]) => first?.id)).toEqual(['film-1', 'film-4']);
  });

  it('takes both parts of a hybrid record', async () => {
    const sparse = (i: number) => ({ indices: [1, i + 2], values: [1, 0.5] });
    await hybrid(
      '/upsert',
      [0, 1, 2].map((i) => ({ id: `h${i}`, vector: [1, i], sparseVector: sparse(i) })),
    );
    const near = (await hybrid('/query', { id: 'h1', topK: 5 })).result as { id: string }[];
    expect(near.map(({ id }) => id).sort()).toEqual(['h0', 'h2']);
  });

  it('is refused for a record that is not there, and beside a vector', async () => {
    expect(await index('/query', { id: 'nobody', topK: 2 })).toMatchObject({
      status: 404,
      error: 'body.0.id: there is no such record',
    });
    expect((await index('/query', { id: 'film-1', vector: [1, 1] })).status).toBe(422);
  });
});

describe('by metadata', () => {
  const filter = { genre: { $in: ['drama', 'noir'] } };

  it('records are counted, in all or in part', async () => {
    const count = async (body?: unknown) => (await index('/count', body)).result;
    expect(await count()).toEqual({ count: 5 });
    expect(await count({ filter })).toEqual({ count: 3 });
    expect(await count({ prefix: 'film-1' })).toEqual({ count: 1 });
    expect(await count({ prefix: 'film-1', filter: "genre = 'noir'" })).toEqual({ count: 0 });
    expect((await index('/count/nowhere', { filter })).result).toEqual({ count: 0 });
    expect((await index('/count', { filtre: 'x' })).status).toBe(400);
  });

  it('values of a field are counted, the most frequent first', async () => {
    const facets = async (body: unknown) => (await index('/facets', body)).result;
    expect(await facets({ field: 'genre' })).toEqual([
      { value: 'drama', count: 2 },
      { value: 'comedy', count: 1 },
      { value: 'noir', count: 1 },
    ]);
    // elements of arrays each, once a record
    expect(await facets({ field: 'tags', filter: { year: { $gte: 1990 } } })).toEqual([
      { value: 'b', count: 2 },
      { value: 'a', count: 1 },
    ]);
    expect(await facets({ field: 'year', limit: 1, filter })).toHaveLength(1);
    expect(await facets({ field: 'nested.deep.v' })).toEqual([
      { value: 1, count: 1 },
      { value: 2, count: 1 },
    ]);
    expect(await facets({ field: 'nobody' })).toEqual([]);
    expect((await index('/facets', { field: 'a..b' })).status).toBe(400);
    expect((await index('/facets', {})).status).toBe(400);
  });

  it('records are read, page by page, as lines and by fetch', async () => {
    const first = (await index('/range', { cursor: '0', limit: 2, filter })).result as {
      nextCursor: string;
      vectors: { id: string }[];
    };
    expect(ids(first.vectors)).toBe('01');
    const rest = (await index('/range', { cursor: first.nextCursor, limit: 2, filter }))
      .result as typeof first;
    expect([ids(rest.vectors), rest.nextCursor]).toEqual(['2', '']);
    expect(ids((await index('/fetch', { filter })).result)).toBe('012');
    const reply = await fetch(`${gateway.url}/main/range`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKENS.vector}`, accept: 'application/x-ndjson' },
      body: JSON.stringify({ cursor: '0', filter }),
    });
    expect((await reply.text()).trim().split('\n')).toHaveLength(3);
    expect((await index('/fetch', { ids: ['film-1'], filter })).status).toBe(400);
  });

  it('metadata are updated, in one step or in many', async () => {
    const count = 1_300;
    const records = Array.from({ length: count }, (_, i) => ({
      id: `r${i}`,
      vector: [1, i],
      metadata: { even: i % 2 === 0, nested: { keep: i, drop: 1 } },
    }));
    await index('/upsert/many', records);
    const update = async (body: unknown) => (await index('/update/many', body)).result;
    const found = async (filter: unknown) =>
      ((await index('/count/many', { filter })).result as { count: number }).count;
    // more than a step
    const patch = { metadata: { seen: 1, nested: { drop: null } }, metadataUpdateMode: 'PATCH' };
    expect(await update({ filter: { even: true }, ...patch })).toEqual({ updated: count / 2 });
    expect([await found({ seen: 1 }), await found({ 'nested.drop': 1 })]).toEqual([count / 2, count / 2]);
    expect(await found({ seen: 1, 'nested.keep': 4 })).toBe(1);
    // one step, by prefix and filter
    expect(await update({ prefix: 'r1', filter: 'seen = 1', metadata: { only: true } })).toEqual({
      updated: records.filter(({ id }, i) => id.startsWith('r1') && i % 2 === 0).length,
    });
    expect(await found('HAS FIELD only AND HAS NOT FIELD nested')).toBeGreaterThan(100);
    expect(await update({ filter: { nobody: 1 }, metadata: {} })).toEqual({ updated: 0 });
    expect((await index('/update/nowhere', { filter: { a: 1 }, metadata: {} })).result).toEqual({
      updated: 0,
    });
  });

  it('large metadata are updated in small steps, and what is as it shall be is not written again', async () => {
    const count = 120;
    const wide = (value: number) =>
      Object.fromEntries(Array.from({ length: 4_000 }, (_, i) => [`k${i}`, value]));
    for (let i = 0; i < count; i += 20) {
      const records = Array.from({ length: 20 }, (_, j) => ({
        id: `w${i + j}`,
        vector: [1, i + j],
        metadata: wide(0),
      }));
      expect((await index('/upsert/wide', records)).status).toBe(200);
    }
    const versions = () =>
      withPostgres(async (client) => {
        const { rows } = await client.query<{ number: string }>(
          `select id as number from ${SCHEMA}.indexes where name = 'main'`,
        );
        const found = await client.query<{ xmin: string }>(
          `select distinct xmin::text from ${SCHEMA}.records_${rows[0]?.number} where id like 'w%' order by 1`,
        );
        return found.rows.map(({ xmin }) => xmin);
      });
    const watch = watchLoop();
    for (const body of [
      { prefix: 'w', metadata: { more: 1 }, metadataUpdateMode: 'PATCH' },
      { prefix: 'w', metadata: wide(1) },
    ]) {
      expect((await index('/update/wide', body)).result).toEqual({ updated: count });
      const written = await versions();
      expect(written.length).toBeGreaterThan(3);
      expect((await index('/update/wide', body)).result).toEqual({ updated: count });
      expect(await versions()).toEqual(written);
    }
    watch.end();
    expect(watch.longestMs()).toBeLessThan(100);
  });

  it('a number that float64 cannot hold is refused', async () => {
    const raw = async (body: string) => {
      const headers = { authorization: `Bearer ${TOKENS.vector}` };
      const reply = await fetch(`${gateway.url}/main/count`, { method: 'POST', headers, body });
      return [reply.status, ((await reply.json()) as { error: string }).error];
    };
    for (const condition of ['-1e400', '{"$lt": 1e400}', '{"$in": [1, 1e400]}', '{"$contains": 1e400}'])
      expect(await raw(`{"filter": {"n": ${condition}}}`)).toEqual([
        400,
        expect.stringContaining('a number that float64 can hold'),
      ]);
  });

  it.each([
    [{ filter: { a: 1 } }, 'expected metadata'],
    [{ filter: { a: 1 }, id: 'x', metadata: {} }, 'either an id'],
    [{ metadata: {} }, 'either an id'],
    [{ filter: { a: 1 }, metadata: {}, vector: [1, 2] }, 'only metadata'],
    [{ filter: {}, metadata: {} }, 'a field, $and or $or'],
  ])('an update by %j is refused', async (body, words) => {
    expect(await index('/update', body)).toMatchObject({
      status: 400,
      error: expect.stringContaining(words),
    });
  });

  it('records are deleted by a filter as JSON', async () => {
    await index('/upsert/gone', [
      { id: 'a', vector: [1, 1], metadata: { old: true } },
      { id: 'b', vector: [1, 1], metadata: { old: false } },
    ]);
    expect((await index('/delete/gone', { filter: { old: true } })).result).toEqual({ deleted: 1 });
    expect((await index('/count/gone')).result).toEqual({ count: 1 });
  });
});

test('keys that a newer SDK may send are passed over by what only reads, and told of; slips are refused', async () => {
  const query = { vector: [1, 0], topK: 1, rerank: true, 'odd\u00e9': 1 };
  const reply = await index('/query', query);
  expect([reply.status, reply.headers.get('vector-warning')]).toEqual([200, 'ignored: rerank, ?']);
  const several = await index('/query', [
    { ...query, explain: true },
    { vector: [1, 0], later: {} },
  ]);
  expect(several.headers.get('vector-warning')).toBe('ignored: rerank, ?, later');
  expect(several.headers.get('vector-plan')).toMatch(/^exact, /);
  for (const [path, body] of [
    ['/fetch', { ids: ['1'], later: 1 }],
    ['/range', { limit: 1, later: 1 }],
    ['/resumable-query', { vector: [1, 0], later: 1 }],
  ] as const)
    expect((await index(path, body)).headers.get('vector-warning')).toBe('ignored: later');
  expect((await index('/query', { vector: [1, 0] })).headers.get('vector-warning')).toBeNull();
  for (const slip of ['filtr', 'Filter', 'includeMetaData', 'top_k', 'minscore', 'namespace'])
    expect(await index('/query', { vector: [1, 0], [slip]: 'x' })).toMatchObject({
      status: 400,
      error: expect.stringContaining(slip),
    });
});

test('by groups: so many entries of each value, the nearest ones, until topK is filled', async () => {
  // one group has nearly all that is near
  const metadata = (i: number) =>
    i % 50 === 0 ? { of: `rare-${i}` } : i % 49 === 0 ? { of: ['list'] } : i === 51 ? {} : { of: 'many' };
  for (let i = 0; i < 3_000; i += 1_000)
    await index(
      '/upsert/groups',
      Array.from({ length: 1_000 }, (_, k) => ({
        id: `${i + k}`,
        vector: [1, (i + k) / 1_000],
        metadata: metadata(i + k),
      })),
    );
  const ids = async (query: object) =>
    (
      (await index('/query/groups', { vector: [1, 0], groupBy: 'of', ...query })).result as { id: string }[]
    ).map(({ id }) => Number(id));
  expect(await ids({ topK: 5 })).toEqual([0, 1, 50, 100, 150]);
  expect(await ids({ topK: 6, groupSize: 3 })).toEqual([0, 1, 2, 3, 50, 100]);
  // all there are: 60 rare ones and one of many
  expect(await ids({ topK: 100 })).toHaveLength(61);
  expect(await ids({ topK: 3, filter: "of != 'rare-50'" })).toEqual([0, 1, 100]);
  expect(await ids({ id: '0', vector: undefined, topK: 2 })).toEqual([1, 50]);
  const whole = await index('/query/groups', {
    ...{ vector: [1, 0], topK: 2, groupBy: 'of', includeMetadata: true },
  });
  expect(whole.result).toMatchObject([{ id: '0', score: 1, metadata: { of: 'rare-0' } }, { id: '1' }]);
  expect(
    (await index('/query/groups', { vector: [1, 0], groupBy: 'of', topK: 200, groupSize: 6 })).status,
  ).toBe(422);
  expect((await index('/query/groups', { vector: [1, 0], groupBy: 'a..b' })).status).toBe(400);
  expect((await index('/resumable-query', { vector: [1, 0], groupBy: 'of' })).status).toBe(400);
});
