import { eventually } from '../support/eventually.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import { TOKENS } from '../support/tokens.js';
import { dropSchema, vectorCaller, withPostgres } from '../support/vector.js';

const SCHEMA = 'test_vector_recall';
const DIMENSION = 32;
const COUNT = 8_000;
const BATCH = 1_000;
const QUESTIONS = 20;

let gateway: RunningGateway;
let index: ReturnType<typeof vectorCaller>;

beforeAll(async () => {
  await dropSchema(SCHEMA);
  gateway = await startGateway({
    vector: {
      database: { schema: SCHEMA },
      indexes: [{ dimension: DIMENSION, similarity: 'COSINE', token: TOKENS.vector }],
    },
  });
  index = vectorCaller(`${gateway.url}/vector`);
});

afterAll(async () => {
  await gateway.stop();
  await dropSchema(SCHEMA);
});

/** Numbers from a fixed seed. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const random = generator(11);

/** About normal: the sum of twelve even ones. */
function normal(): number {
  let sum = -6;
  for (let i = 0; i < 12; i++) sum += random();
  return sum;
}

/** A vector of length 1 about `centre`. */
function near(centre: readonly number[], spread: number): number[] {
  const vector = centre.map((x) => x + spread * normal());
  const length = Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
  return vector.map((x) => x / length);
}

const centre = () => Array.from({ length: DIMENSION }, normal);

interface Stored {
  id: string;
  vector: number[];
  metadata: Record<string, unknown>;
}

async function store(space: string, records: readonly Stored[]): Promise<void> {
  for (let i = 0; i < records.length; i += BATCH)
    expect((await index(`/upsert/${space}`, records.slice(i, i + BATCH))).status).toBe(200);
  await eventually(() =>
    withPostgres(async (client) => {
      const { rows } = await client.query(`select hnsw from ${SCHEMA}.namespaces where name = $1`, [space]);
      expect(rows).toEqual([{ hnsw: true }]);
    }),
  );
  // the first query of a gateway tells it of the HNSW index
  await index(`/query/${space}`, { vector: records[0]?.vector, topK: 1 });
}

const dot = (a: readonly number[], b: readonly number[]) =>
  a.reduce((sum, x, i) => sum + x * (b[i] as number), 0);

interface Found {
  readonly id: string;
  readonly score: number;
}

/** Shares of the true neighbours in the replies, by score: equally near ones count. Checks that all else is right. */
async function recalls(
  space: string,
  records: readonly Stored[],
  questions: readonly number[][],
  topK: number,
  { filter, matches = () => true }: { filter?: string; matches?: (record: Stored) => boolean } = {},
): Promise<number[]> {
  const { result, status } = await index(
    `/query/${space}`,
    questions.map((vector) => ({ vector, topK, ...(filter === undefined ? {} : { filter }) })),
  );
  expect(status).toBe(200);
  const byId = new Map(records.map((record) => [record.id, record]));
  return questions.map((question, q) => {
    const found = (result as Found[][])[q] as Found[];
    const truth = records
      .filter(matches)
      .map(({ vector }) => (1 + dot(question, vector)) / 2)
      .sort((a, b) => b - a)
      .slice(0, topK);
    expect(new Set(found.map(({ id }) => id)).size).toBe(truth.length);
    for (const { id, score } of found) {
      const record = byId.get(id) as Stored;
      expect(matches(record)).toBe(true);
      expect(score).toBeCloseTo((1 + dot(question, record.vector)) / 2, 5);
    }
    const least = (truth.at(-1) as number) - 1e-6;
    return found.filter(({ score }) => score >= least).length / truth.length;
  });
}

const mean = (values: readonly number[]) => values.reduce((sum, x) => sum + x, 0) / values.length;

describe('filters that follow the vectors or go against them', () => {
  const languages = { en: centre(), fr: centre(), de: centre() };
  type Language = keyof typeof languages;
  const topics = Object.fromEntries(
    Object.entries(languages).map(([name, middle]) => [
      name,
      Array.from({ length: 10 }, () => near(middle, 0.8)),
    ]),
  ) as Record<Language, number[][]>;
  const textIn = (lang: Language) => near(topics[lang][Math.floor(random() * 10)] as number[], 0.08);
  const records = Array.from({ length: COUNT }, (_, n): Stored => {
    const lang = n % 10 < 6 ? 'en' : n % 10 < 9 ? 'fr' : 'de';
    return { id: String(n), vector: textIn(lang), metadata: { lang, n } };
  });
  const questions = Array.from({ length: QUESTIONS }, () => textIn('en'));

  beforeAll(() => store('languages', records));

  test.each([
    ["lang = 'en'", (lang: unknown) => lang === 'en'],
    ["lang = 'fr'", (lang: unknown) => lang === 'fr'],
    ["lang != 'en'", (lang: unknown) => lang !== 'en'],
    ["lang GLOB '?[re]'", (lang: unknown) => lang !== 'en'],
  ])('%s finds the nearest matches', async (filter, isMeant) => {
    const matches = ({ metadata }: Stored) => isMeant(metadata.lang);
    for (const topK of [10, 100]) {
      const shares = await recalls('languages', records, questions, topK, { filter, matches });
      expect(mean(shares)).toBeGreaterThan(0.95);
      expect(Math.min(...shares)).toBeGreaterThan(0.7);
    }
  });

  test('a filter that the vectors know nothing of is answered by the graph, with high recall', async () => {
    const matches = ({ metadata }: Stored) => (metadata.n as number) >= COUNT / 2;
    const shares = await recalls('languages', records, questions, 10, {
      filter: `n >= ${COUNT / 2}`,
      matches,
    });
    expect(mean(shares)).toBeGreaterThan(0.95);
  });

  test('topK 1,000 without a filter', async () => {
    expect(mean(await recalls('languages', records, questions.slice(0, 5), 1_000))).toBeGreaterThan(0.95);
  });
});
