import { loadConfig } from '../../../src/config/load.js';
import { testDocument } from '../../support/environment.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller, withPostgres } from '../../support/vector.js';

const SCHEMA = 'test_vector_binary';
const ADMIN = 'test-vector-administrator-0123456789';
const DIMENSION = 256;
const COUNT = 2_500;

let gateway: RunningGateway;

beforeAll(async () => {
  await dropSchema(SCHEMA);
  gateway = await startGateway({
    vector: {
      database: { schema: SCHEMA },
      indexes: [{ name: 'declared', dimension: 2, token: TOKENS.vector }],
      adminToken: ADMIN,
    },
  });
});

afterAll(async () => {
  await gateway.stop();
  await dropSchema(SCHEMA);
});

/** Numbers from a fixed seed, around 0. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
}

const random = generator(11);
/** As embeddings are: what differs is of few dimensions. */
const DIRECTIONS = Array.from({ length: 12 }, () => Array.from({ length: DIMENSION }, random));
const point = () => {
  const parts = DIRECTIONS.map(random);
  return Array.from({ length: DIMENSION }, (_, i) =>
    DIRECTIONS.reduce(
      (sum, direction, k) => sum + (direction[i] as number) * (parts[k] as number),
      random() / 20,
    ),
  );
};

const cosine = (a: number[], b: number[]) => {
  const product = (x: number[], y: number[]) =>
    x.reduce((sum, value, i) => sum + value * (y[i] as number), 0);
  return product(a, b) / Math.sqrt(product(a, a) * product(b, b));
};

const graphs = () =>
  withPostgres(async (client) => {
    const { rows } = await client.query<{ name: string; text: string; bytes: string }>(
      `select indexname as name, indexdef as text, pg_relation_size((schemaname || '.' || indexname)::regclass) as bytes
       from pg_indexes where schemaname = $1 and indexname ~ '^hnsw_'`,
      [SCHEMA],
    );
    return rows;
  });

test('a graph over bits takes the place of one over vectors, is smaller, and finds nearly as much with exact scores', async () => {
  const admin = vectorCaller(`${gateway.url}/vector/indexes`);
  await admin('', { name: 'bits', dimension: DIMENSION }, { token: ADMIN });
  const call = vectorCaller(`${gateway.url}/vector/indexes/bits`);
  const index = (path: string, body?: unknown) => call(path, body, { token: ADMIN });
  const records = Array.from({ length: COUNT }, (_, i) => ({
    id: `${i}`,
    vector: point(),
    metadata: { half: i % 2 },
  }));
  await index('/graph', { defer: true });
  for (let i = 0; i < COUNT; i += 500)
    expect((await index('/upsert', records.slice(i, i + 500))).result).toBe('Success');
  await index('/graph', { defer: false });
  const isReady = () =>
    eventually(async () => {
      const { result } = await index('/info?explain');
      expect(result).toMatchObject({ namespaces: { '': { graph: 'ready' } } });
    }, 30_000);
  await isReady();
  const questions = Array.from({ length: 20 }, point);
  const ask = async (extra: object = {}) => {
    const queries = questions.map((vector) => ({ vector, topK: 10, explain: true, ...extra }));
    await index('/query', queries);
    return index('/query', queries);
  };
  expect((await ask()).headers.get('vector-plan')).toMatch(/^graph/);
  const [whole] = await graphs();

  const altered = await admin(
    '/bits',
    { hnsw: { quantisation: 'binary' } },
    { token: ADMIN, method: 'PATCH' },
  );
  expect(altered.result).toMatchObject({ hnsw: { quantisation: 'binary', m: 16 } });
  await eventually(async () => {
    const left = await graphs();
    expect(left).toHaveLength(1);
    expect(left[0]?.text).toContain('binary_quantize');
    expect(Number(left[0]?.bytes)).toBeLessThan(Number(whole?.bytes) / 2);
  }, 30_000);
  await isReady();
  for (const [extra, least] of [
    [{}, 0.8],
    [{ ef: 120 }, 0.8],
    [{ filter: 'half = 1' }, 0.8],
    [{ exact: true }, 1],
  ] as const) {
    const reply = await ask(extra);
    const found = reply.result as { id: string; score: number }[][];
    const shares = questions.map((vector, i) => {
      const truth = records
        .filter(({ metadata }) => !('filter' in extra) || metadata.half === 1)
        .map((record) => ({ id: record.id, score: (1 + cosine(record.vector, vector)) / 2 }))
        .sort((a, b) => b.score - a.score)
        .slice(0, 10);
      for (const { id, score } of found[i] ?? []) {
        const own = truth.find((entry) => entry.id === id);
        if (own !== undefined) expect(score).toBeCloseTo(own.score, 5);
      }
      return truth.filter(({ id }) => found[i]?.some((entry) => entry.id === id)).length / 10;
    });
    expect(shares.reduce((a, b) => a + b) / shares.length).toBeGreaterThanOrEqual(least);
    if (!('filter' in extra))
      expect(reply.headers.get('vector-plan')).toMatch('exact' in extra ? /^exact/ : /^graph/);
  }
});

test('more than 4,000 dimensions may have a graph over bits; distances may not', () => {
  const problems = (index: object) => {
    const document = testDocument({ vector: { indexes: [{ token: TOKENS.vector, ...index }] } });
    try {
      loadConfig({ document, environment: { PORTICO_DATABASE_URL: 'postgres://u@127.0.0.1/x' } });
      return '';
    } catch (error) {
      return String(error);
    }
  };
  const hnsw = { quantisation: 'binary' };
  expect(problems({ dimension: 8_000, hnsw })).toBe('');
  expect(problems({ dimension: 8_000 })).toContain('quantisation: binary');
  expect(problems({ dimension: 8, similarity: 'EUCLIDEAN', hnsw })).toContain(
    'vector.indexes[0].hnsw.quantisation',
  );
});
