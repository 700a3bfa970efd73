import fc from 'fast-check';
import { float32Text, fuse } from '../../../src/services/vector/search/fusion.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller } from '../../support/vector.js';

const SCHEMA = 'test_vector_sparse';

let gateway: RunningGateway;
let sparse: ReturnType<typeof vectorCaller>;
let hybrid: ReturnType<typeof vectorCaller>;

beforeAll(async () => {
  await dropSchema(SCHEMA);
  gateway = await startGateway({
    vector: {
      database: { schema: SCHEMA },
      indexes: [
        { name: 'sparse', path: '/sparse', type: 'SPARSE', token: TOKENS.vector },
        { name: 'hybrid', path: '/hybrid', type: 'HYBRID', dimension: 2, token: TOKENS.vector },
      ],
    },
  });
  sparse = vectorCaller(`${gateway.url}/sparse`);
  hybrid = vectorCaller(`${gateway.url}/hybrid`);
});

afterAll(async () => {
  await gateway.stop();
  await dropSchema(SCHEMA);
});

interface Sparse {
  indices: number[];
  values: number[];
}

interface Entry {
  id: string;
  score: number;
}

const entriesOf = (result: unknown) => result as Entry[];
const f = Math.fround;
/** As it stands in a reply. */
const shown = (score: number) => Number(float32Text(score));

/** Inner product as the contract's documentation has it, over a Map of each side. */
function product(a: Sparse, b: Sparse): number | undefined {
  let sum = 0;
  let common = false;
  a.indices.forEach((index, i) => {
    b.indices.forEach((other, k) => {
      if (index !== other) return;
      common = true;
      sum += f(a.values[i] as number) * f(b.values[k] as number);
    });
  });
  return common ? shown(sum) : undefined;
}

const sparseVector: fc.Arbitrary<Sparse> = fc
  .array(fc.tuple(fc.integer({ min: -3, max: 8 }), fc.constantFrom(-2, -0.5, 0, 0.25, 1, 3)), {
    minLength: 1,
    maxLength: 6,
  })
  .map((pairs) => ({ indices: pairs.map(([i]) => i), values: pairs.map(([, v]) => v) }));

test('sparse queries rank by the inner product over common indices, and leave out records without one', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(sparseVector, { minLength: 1, maxLength: 12 }),
      fc.array(sparseVector, { minLength: 5, maxLength: 5 }),
      async (stored, asked) => {
        await sparse('/reset/product', []);
        const records = stored.map((part, i) => ({ id: `${i}`, sparseVector: part }));
        expect((await sparse('/upsert/product', records)).status).toBe(200);
        const { result } = await sparse(
          '/query/product',
          asked.map((part) => ({ sparseVector: part, topK: 100 })),
        );
        asked.forEach((part, i) => {
          const expected = records
            .map(({ id, sparseVector: own }) => ({ id, score: product(own, part) }))
            .filter((entry): entry is Entry => entry.score !== undefined)
            // sort is stable: equal scores stay in the order of insertion
            .sort((a, b) => b.score - a.score);
          expect((result as Entry[][])[i]).toEqual(expected);
        });
      },
    ),
    { numRuns: 25 },
  );
});

test('the parts come back as they were sent, repeated indices and all, and follow every change', async () => {
  const part = { indices: [5, -2147483648, 5, 2147483647], values: [0.1, 2, 0.3, 1e-7] };
  await sparse('/upsert/parts', { id: 'a', sparseVector: part, metadata: { x: 1 } });
  const get = async () => (await sparse('/fetch/parts', { ids: ['a'], includeVectors: true })).result;
  expect(await get()).toEqual([{ id: 'a', sparseVector: part }]);
  const scoreOf = async (index: number) => {
    const { result } = await sparse('/query/parts', { sparseVector: { indices: [index], values: [2] } });
    return entriesOf(result)[0]?.score;
  };
  expect(await scoreOf(5)).toBe(shown(2 * f(f(0.1) + f(0.3))));
  await sparse('/update/parts', { id: 'a', sparseVector: { indices: [7], values: [4] } });
  expect([await scoreOf(5), await scoreOf(7)]).toEqual([undefined, 8]);
  await sparse('/upsert/parts', { id: 'a', sparseVector: { indices: [8], values: [1] } });
  expect([await scoreOf(7), await scoreOf(8)]).toEqual([undefined, 2]);
  await sparse('/delete/parts', ['a']);
  expect(await scoreOf(8)).toBeUndefined();
  await sparse('/upsert/parts', { id: 'b', sparseVector: { indices: [], values: [] } });
  expect((await sparse('/query/parts', { sparseVector: { indices: [], values: [] } })).result).toEqual([]);
});

test('scores by IDF come out as those of the hosted product, digit by digit', async () => {
  await sparse('/upsert/literal', [
    { id: 'id0', sparseVector: { indices: [0, 1], values: [0.1, 0.2] } },
    { id: 'id1', sparseVector: { indices: [1, 2], values: [0.2, 0.3] } },
    { id: 'id2', sparseVector: { indices: [2, 3], values: [0.3, 0.4] } },
  ]);
  const sparseVector = { indices: [2, 3], values: [0.5, 0.5] };
  const { result } = await sparse('/query/literal', { sparseVector, weightingStrategy: 'IDF', topK: 1 });
  expect(result).toEqual([{ id: 'id2', score: 0.26666638 }]);
});

test('IDF weighs by how rare an index is in the namespace', async () => {
  const one = (indices: number[]) => ({ indices, values: indices.map(() => 1) });
  await sparse('/upsert/idf', [
    { id: 'rare', sparseVector: one([1, 2]) },
    { id: 'common', sparseVector: one([2]) },
    { id: 'other', sparseVector: one([2, 3]) },
  ]);
  const { result } = await sparse('/query/idf', { sparseVector: one([1]), weightingStrategy: 'IDF' });
  expect(result).toEqual([{ id: 'rare', score: shown(Math.log(1 + 2.5 / 1.5)) }]);
  expect(entriesOf(result)[0]?.score).toBeCloseTo(0.98083, 5);
  const both = await sparse('/query/idf', { sparseVector: one([1, 2]), weightingStrategy: 'IDF' });
  const common = Math.log(1 + 0.5 / 3.5);
  expect(both.result).toEqual([
    { id: 'rare', score: shown(Math.fround(Math.log(1 + 2.5 / 1.5)) + Math.fround(common)) },
    { id: 'common', score: shown(common) },
    { id: 'other', score: shown(common) },
  ]);
});

test('filters hold for sparse and hybrid queries', async () => {
  const records = Array.from({ length: 10 }, (_, i) => ({
    id: `${i}`,
    vector: [1, i],
    sparseVector: { indices: [1], values: [i + 1] },
    metadata: { even: i % 2 === 0 },
  }));
  await hybrid('/upsert/filtered', records);
  const filter = 'even = true';
  const ask = { sparseVector: { indices: [1], values: [1] }, filter, topK: 20 };
  const ids = (result: unknown) => entriesOf(result).map(({ id }) => id);
  expect(ids((await hybrid('/query/filtered', ask)).result)).toEqual(['8', '6', '4', '2', '0']);
  expect(ids((await hybrid('/query/filtered', { ...ask, vector: [1, 0] })).result).sort()).toEqual([
    '0',
    '2',
    '4',
    '6',
    '8',
  ]);
});

test('RRF and DBSF join the lists as documented', () => {
  const list = (...scores: [string, number][]) => scores.map(([row, score]) => ({ row, score }));
  const dense = list(['a', 0.9], ['b', 0.6], ['c', 0.3], ['d', 0.1]);
  const other = list(['x', 9], ['y', 8], ['z', 7], ['b', 6]);
  const rrf = fuse(dense, other, 'RRF');
  expect(rrf.find(({ row }) => row === 'b')?.score).toBeCloseTo(1 / 61 + 1 / 63, 7);
  expect(float32Text(f(f(1 / 61) + f(1 / 63)))).toBe('0.03226646');
  expect(rrf.map(({ row }) => row)).toEqual(['b', 'a', 'x', 'y', 'c', 'z', 'd']);
  const dbsf = fuse(list(['a', 0.9], ['b', 0.6], ['c', 0.3]), [], 'DBSF').map(({ score }) =>
    score.toFixed(4),
  );
  expect(dbsf).toEqual(['0.6667', '0.5000', '0.3333']);
  expect(fuse(list(['a', 5]), list(['a', 1], ['b', 1]), 'DBSF')).toEqual(list(['a', 1], ['b', 0.5]));
  expect(fuse([], [], 'RRF')).toEqual([]);
});

test('float32 numbers are written in their shortest form', () => {
  fc.assert(
    fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (value) => {
      const text = float32Text(value);
      expect(f(Number(text))).toBe(value === 0 ? 0 : value);
      const digits = text
        .replace(/e.*$/, '')
        .replace(/[-.]/g, '')
        .replace(/^0+|0+$/g, '').length;
      for (let fewer = 1; fewer < digits; fewer++)
        expect(f(Number(value.toPrecision(fewer)))).not.toBe(value);
    }),
  );
});

test('a hybrid query joins both lists; with one component it answers as that one', async () => {
  await hybrid('/upsert/both', [
    { id: 'dense', vector: [1, 0], sparseVector: { indices: [9], values: [1] } },
    { id: 'both', vector: [1, 0.1], sparseVector: { indices: [1], values: [5] } },
    { id: 'sparse', vector: [0, 1], sparseVector: { indices: [1], values: [9] } },
  ]);
  const vector = [1, 0];
  const sparseVector = { indices: [1], values: [1] };
  const ask = async (body: object) => (await hybrid('/query/both', body)).result;
  const rrf = (...ranks: number[]) =>
    shown(ranks.map((rank) => f(1 / (60 + rank))).reduce((a, b) => f(a + b)));
  // dense ranks: dense 0, both 1, sparse 2; sparse ranks: sparse 0, both 1
  expect(await ask({ vector, sparseVector, topK: 3 })).toEqual([
    { id: 'sparse', score: rrf(2, 0) },
    { id: 'both', score: rrf(1, 1) },
    { id: 'dense', score: rrf(0) },
  ]);
  const dbsf = entriesOf(
    await ask({ vector, sparseVector, fusionAlgorithm: 'DBSF', includeVectors: true, topK: 1 }),
  );
  expect(dbsf).toEqual([
    { id: 'both', score: expect.any(Number), vector: [1, 0.1], sparseVector: { indices: [1], values: [5] } },
  ]);
  expect(entriesOf(await ask({ vector }))[0]).toEqual({ id: 'dense', score: 1 });
  expect(await ask({ sparseVector })).toEqual([
    { id: 'sparse', score: 9 },
    { id: 'both', score: 5 },
  ]);
  expect(await ask({ vector, sparseVector, topK: 3, filter: 'HAS FIELD nothing' })).toEqual([]);
});

test('info tells the kind of the index and of its parts', async () => {
  const [ofSparse, ofHybrid] = [(await sparse('/info')).result, (await hybrid('/info')).result];
  expect(ofSparse).toMatchObject({
    indexType: 'SPARSE',
    dimension: 0,
    similarityFunction: '',
    sparseIndex: { embeddingModel: '' },
  });
  expect(ofSparse).not.toHaveProperty('denseIndex');
  expect(ofHybrid).toMatchObject({
    indexType: 'HYBRID',
    dimension: 2,
    similarityFunction: 'COSINE',
    denseIndex: { dimension: 2, similarityFunction: 'COSINE', embeddingModel: '' },
    sparseIndex: { embeddingModel: '' },
  });
});

const good = { indices: [1], values: [1] };

test.each<[string, object, number, RegExp]>([
  ['sparse', { id: 'x', vector: [1, 2], sparseVector: good }, 422, /body\.0\.vector: this index is sparse/],
  ['sparse', { id: 'x' }, 422, /body\.0\.sparseVector: every record of this index needs one/],
  ['sparse', { id: 'x', sparseVector: { indices: [1, 2], values: [1] } }, 422, /2 indices and 1 values/],
  [
    'sparse',
    { id: 'x', sparseVector: { indices: [1.5], values: [1] } },
    422,
    /indices\.0: expected a signed 32-bit integer/,
  ],
  [
    'sparse',
    { id: 'x', sparseVector: { indices: [2 ** 31], values: [1] } },
    422,
    /indices\.0: expected a signed/,
  ],
  [
    'sparse',
    { id: 'x', sparseVector: { indices: ['1'], values: [1] } },
    400,
    /indices\.0: expected a number/,
  ],
  [
    'sparse',
    { id: 'x', sparseVector: { indices: [1], values: [null] } },
    400,
    /values\.0: expected a number/,
  ],
  [
    'sparse',
    { id: 'x', sparseVector: { indices: [1], values: [1e38] } },
    422,
    /values\.0: expected a number of at most/,
  ],
  [
    'sparse',
    { id: 'x', sparseVector: { indices: new Array(1_001).fill(1), values: new Array(1_001).fill(1) } },
    422,
    /more than the limit of 1000/,
  ],
  ['sparse', { id: 'x', sparseVector: { indices: [1] } }, 400, /values/],
  ['sparse', { id: 'x', sparseVector: [1, 2] }, 400, /sparseVector/],
  ['hybrid', { id: 'x', vector: [1, 2] }, 422, /body\.0\.sparseVector: every record of this index needs one/],
  [
    'hybrid',
    { id: 'x', sparseVector: good },
    422,
    /body\.0\.vector: every record of this index needs a vector/,
  ],
])('the %s index refuses %.70j', async (name, record, status, message) => {
  const index = name === 'sparse' ? sparse : hybrid;
  const reply = await index(
    '/upsert/refused',
    [{ id: 'first', vector: [1, 1], sparseVector: good }, record].slice(1),
  );
  expect([reply.status, reply.error]).toEqual([status, expect.stringMatching(message)]);
  expect((await index('/fetch/refused', { ids: ['x'] })).result).toEqual([null]);
});

test('queries and updates that do not fit the kind of the index are refused', async () => {
  const refusals: [ReturnType<typeof vectorCaller>, string, object, RegExp][] = [
    [sparse, '/query', { vector: [1, 2] }, /this index is sparse/],
    [sparse, '/query', { topK: 1 }, /needs sparseVector/],
    [hybrid, '/query', { topK: 1 }, /needs vector or sparseVector/],
    [hybrid, '/update', { id: 'x', vector: [1, 2] }, /together or none/],
    [hybrid, '/update', { id: 'x', sparseVector: good }, /together or none/],
    [sparse, '/update', { id: 'x', vector: [1, 2] }, /this index is sparse/],
  ];
  for (const [index, path, body, message] of refusals) {
    const { status, error } = await index(path, body);
    expect([status, error]).toEqual([422, expect.stringMatching(message)]);
  }
  const wrong = await hybrid('/query', { vector: [1, 2], sparseVector: good, fusionAlgorithm: 'SUM' });
  expect([wrong.status, wrong.error]).toEqual([400, expect.stringMatching(/fusionAlgorithm/)]);
});
