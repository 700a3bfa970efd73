import { Index } from '@upstash/vector';
import { type SpawnedGateway, spawnGateway } from '../support/spawned-gateway.js';
import { TOKENS } from '../support/tokens.js';
import { dropSchema } from '../support/vector.js';

jest.setTimeout(30_000);

const SCHEMA = 'test_vector_sdk';
const DIMENSION = 256;

type Metadata = { title: string; year?: number; tags?: string[] };

let gateway: SpawnedGateway;
let index: Index<Metadata>;

beforeAll(async () => {
  await dropSchema(SCHEMA);
  gateway = await spawnGateway({
    vector: { database: { schema: SCHEMA }, indexes: [{ name: 'sdk', dimension: DIMENSION }] },
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
