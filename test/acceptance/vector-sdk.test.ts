import { FusionAlgorithm, Index, QueryMode, WeightingStrategy } from '@upstash/vector';
import { type SpawnedGateway, spawnGateway } from '../support/spawned-gateway.js';
import { TOKENS } from '../support/tokens.js';
import { dropSchema } from '../support/vector.js';

const SCHEMA = 'test_vector_sdk';
const DIMENSION = 256;

type Metadata = { title: string; year?: number; tags?: string[] };

let gateway: SpawnedGateway;
let index: Index<Metadata>;

beforeAll(async () => {
  await dropSchema(SCHEMA);
  gateway = await spawnGateway({
    vector: {
      database: { schema: SCHEMA },
      indexes: [
        { name: 'sdk', dimension: DIMENSION },
        { name: 'hybrid', path: '/tenants/hybrid', type: 'HYBRID', dimension: 2, token: TOKENS.vector },
        { name: 'words', path: '/words', type: 'SPARSE', token: TOKENS.vector, embedding: { sparse: true } },
      ],
    },
  });
  index = new Index<Metadata>({ url: `${gateway.url}/vector`, token: TOKENS.vector });
});

afterAll(async () => {
  expect(await gateway.stop()).toBe(0);
  await dropSchema(SCHEMA);
});

/** Unit vectors whose cosine with the first is known: `(1 - i / 10)`. */
function towards(i: number): number[] {
  const cosine = 1 - i / 10;
  const vector = new Array<number>(DIMENSION).fill(0);
  vector[0] = cosine;
  vector[1] = Math.sqrt(1 - cosine * cosine);
  return vector;
}

test('upsert, query and info as an application calls them', async () => {
  const records = Array.from({ length: 12 }, (_, i) => ({
    id: `doc-${i}`,
    vector: towards(i),
    metadata: { title: `Document ${i}`, year: 2000 + i, tags: ['a', `t${i}`] },
  }));
  expect(await index.upsert(records)).toBe('Success');

  const nearest = await index.query({
    vector: towards(0),
    topK: 3,
    includeMetadata: true,
    includeVectors: true,
  });
  expect(nearest.map(({ id }) => id)).toEqual(['doc-0', 'doc-1', 'doc-2']);
  expect(nearest[0]).toEqual({
    id: 'doc-0',
    score: 1,
    vector: towards(0),
    metadata: { title: 'Document 0', year: 2000, tags: ['a', 't0'] },
  });
  expect(nearest[1]?.score).toBeCloseTo(0.95, 6);

  const bare = await index.query({ vector: towards(0), topK: 100 });
  expect(bare).toHaveLength(12);
  expect(Object.keys(bare[0] ?? {}).sort()).toEqual(['id', 'score']);

  expect(await index.info()).toMatchObject({
    vectorCount: 12,
    pendingVectorCount: 0,
    dimension: DIMENSION,
    similarityFunction: 'COSINE',
    namespaces: { '': { vectorCount: 12, pendingVectorCount: 0 } },
  });
});

test('a single record, a numeric id, data and a namespace', async () => {
  const namespace = index.namespace('my space');
  expect(
    await namespace.upsert({ id: 7, vector: towards(4), metadata: { title: 'seven' }, data: 'plain text' }),
  ).toBe('Success');
  expect(
    await namespace.query({ vector: towards(4), topK: 5, includeData: true, includeMetadata: true }),
  ).toEqual([{ id: '7', score: 1, metadata: { title: 'seven' }, data: 'plain text' }]);
  expect(await index.namespace('empty').query({ vector: towards(4), topK: 5 })).toEqual([]);
});

test("errors reach the application with the contract's words", async () => {
  await expect(index.upsert({ id: 'x', vector: [1, 2] })).rejects.toThrow(
    `Invalid vector dimension: 2, expected: ${DIMENSION}`,
  );
  await expect(index.query({ vector: [1], topK: 1 })).rejects.toThrow('Invalid vector dimension: 1');
  const stranger = new Index({ url: `${gateway.url}/vector`, token: 'wrong' });
  await expect(stranger.info()).rejects.toThrow('Unauthorized: Invalid auth token');
});

test('fetch, range, update and delete in all their forms', async () => {
  const space = index.namespace('forms');
  await space.upsert(
    Array.from({ length: 7 }, (_, i) => ({
      id: `f${i}`,
      vector: towards(i),
      metadata: { title: `t${i}`, year: i },
    })),
  );
  expect(await space.fetch(['f1', 'none', 'f0'], { includeMetadata: true })).toEqual([
    { id: 'f1', metadata: { title: 't1', year: 1 } },
    null,
    { id: 'f0', metadata: { title: 't0', year: 0 } },
  ]);
  expect(await space.fetch({ prefix: 'f' })).toHaveLength(7);
  const ids: (string | number)[] = [];
  for (let cursor: string | number = 0; cursor !== ''; ) {
    const page: { nextCursor: string; vectors: { id: string | number }[] } = await space.range({
      cursor,
      limit: 3,
    });
    ids.push(...page.vectors.map(({ id }) => id));
    cursor = page.nextCursor;
  }
  expect(ids).toEqual(['f0', 'f1', 'f2', 'f3', 'f4', 'f5', 'f6']);
  expect(await space.update({ id: 'f1', metadata: { title: 'new' } })).toEqual({ updated: 1 });
  expect(
    await space.update({
      id: 'f2',
      metadata: { tags: ['x'] } as Partial<Metadata> as Metadata,
      metadataUpdateMode: 'PATCH',
    }),
  ).toEqual({ updated: 1 });
  expect(await space.fetch(['f1', 'f2'], { includeMetadata: true })).toEqual([
    { id: 'f1', metadata: { title: 'new' } },
    { id: 'f2', metadata: { title: 't2', year: 2, tags: ['x'] } },
  ]);
  expect(await space.delete('f0')).toEqual({ deleted: 1 });
  expect(await space.delete(['f1', 'none'])).toEqual({ deleted: 1 });
  expect(await space.delete({ filter: 'year >= 5' })).toEqual({ deleted: 2 });
  expect(await space.delete({ prefix: 'f' })).toEqual({ deleted: 3 });
});

test('filters, several queries at once, and a resumable query', async () => {
  const space = index.namespace('queries');
  await space.upsert(
    Array.from({ length: 9 }, (_, i) => ({
      id: i,
      vector: towards(i),
      metadata: { title: `t${i}`, year: 2000 + i, tags: [i % 2 === 0 ? 'even' : 'odd'] },
    })),
  );
  const found = await space.query({
    vector: towards(0),
    topK: 3,
    filter: "year > 2002 AND tags CONTAINS 'odd'",
  });
  expect(found.map(({ id }) => id)).toEqual(['3', '5', '7']);
  const one = { vector: towards(8), topK: 1 };
  expect(
    (await index.queryMany([one], { namespace: 'queries' })).map((list) => list.map(({ id }) => id)),
  ).toEqual([['8']]);
  const many = await index.queryMany([one, { vector: towards(0), topK: 2 }], { namespace: 'queries' });
  expect(many.map((list) => list.map(({ id }) => id))).toEqual([['8'], ['0', '1']]);
  const { result, fetchNext, stop } = await space.resumableQuery({
    vector: towards(0),
    topK: 2,
    maxIdle: 60,
  });
  expect(result.map(({ id }) => id)).toEqual(['0', '1']);
  expect((await fetchNext(3)).map(({ id }) => id)).toEqual(['2', '3', '4']);
  expect((await fetchNext(100)).map(({ id }) => id)).toEqual(['5', '6', '7', '8']);
  await stop();
  await expect(space.query({ vector: towards(0), topK: 3, filter: 'year >' })).rejects.toThrow(
    'column 7: expected a number',
  );
});

test('namespaces are listed, emptied and deleted', async () => {
  await index.namespace('gone').upsert({ id: 'x', vector: towards(1) });
  expect(await index.listNamespaces()).toEqual(expect.arrayContaining(['', 'gone']));
  expect(await index.namespace('gone').reset()).toBe('Success');
  expect((await index.info()).namespaces.gone).toEqual({ vectorCount: 0, pendingVectorCount: 0 });
  await index.deleteNamespace('gone');
  expect(await index.listNamespaces()).not.toContain('gone');
  await expect(index.deleteNamespace('gone')).rejects.toThrow(
    'Namespace gone for the index sdk does not exist',
  );
  await index.reset({ all: true });
  expect((await index.info()).vectorCount).toBe(0);
  expect(await index.query({ vector: towards(0), topK: 3 })).toEqual([]);
});

test('hybrid and sparse indexes', async () => {
  const hybrid = new Index({ url: `${gateway.url}/tenants/hybrid/`, token: TOKENS.vector });
  const part = (index: number, value: number) => ({ indices: [index], values: [value] });
  await hybrid.upsert([
    { id: 'a', vector: [1, 0], sparseVector: part(1, 1) },
    { id: 'b', vector: [0, 1], sparseVector: part(1, 2) },
  ]);
  const ask = { vector: [1, 0], sparseVector: part(1, 1), topK: 2, includeVectors: true };
  for (const fusionAlgorithm of [FusionAlgorithm.RRF, FusionAlgorithm.DBSF]) {
    const result = await hybrid.query({ ...ask, fusionAlgorithm });
    expect(result.map(({ id }) => id)).toEqual(['a', 'b']);
    expect(result[1]).toMatchObject({ vector: [0, 1], sparseVector: part(1, 2) });
  }
  expect(
    (await hybrid.query({ sparseVector: part(1, 3), topK: 1, weightingStrategy: WeightingStrategy.IDF }))[0]
      ?.id,
  ).toBe('b');
  expect(await hybrid.info()).toMatchObject({ indexType: 'HYBRID' });

  const words = new Index({ url: `${gateway.url}/words`, token: TOKENS.vector });
  await words.upsert([
    { id: 'a', data: 'alpha beta' },
    { id: 'b', data: 'beta gamma' },
  ]);
  const found = await words.query({ data: 'gamma', topK: 5, includeData: true, queryMode: QueryMode.SPARSE });
  expect(found.map(({ id, data }) => [id, data])).toEqual([['b', 'beta gamma']]);
  await expect(index.upsert({ id: 'x', data: 'text' })).rejects.toThrow(
    'Embedding data for this index is not allowed',
  );
});
