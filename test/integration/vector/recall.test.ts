import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller, withPostgres } from '../../support/vector.js';

const SCHEMA = 'test_vector_recall';
const DIMENSION = 32;
const COUNT = 8_000;
const BATCH = 1_000;
const QUESTIONS = 20;

let gateway: RunningGateway;
let index: ReturnType<typeof vectorCaller>;

async function startAgain(): Promise<void> {
  gateway = await startGateway({
    vector: {
      database: { schema: SCHEMA },
      indexes: [{ dimension: DIMENSION, similarity: 'COSINE', token: TOKENS.vector }],
    },
  });
  index = vectorCaller(`${gateway.url}/vector`);
}

beforeAll(async () => {
  await dropSchema(SCHEMA);
  await startAgain();
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

describe('many records with one vector', () => {
  const topics = Array.from({ length: 20 }, centre);
  const text = () => near(topics[Math.floor(random() * 20)] as number[], 0.6);
  const equal = near(topics[0] as number[], 0.6);
  const records = Array.from(
    { length: COUNT },
    (_, n): Stored => ({
      id: String(n),
      vector: n % 2 === 0 ? equal : text(),
      metadata: { n, third: n % 3 },
    }),
  );
  const beside = Array.from({ length: QUESTIONS }, () => near(topics[0] as number[], 0.6));
  const elsewhere = Array.from({ length: QUESTIONS }, text);

  beforeAll(() => store('equal', records));

  test.each([
    ['beside them', beside],
    ['elsewhere', elsewhere],
  ])('the nearest are found %s, with a filter too', async (_, questions) => {
    expect(mean(await recalls('equal', records, questions, 10))).toBeGreaterThan(0.98);
    expect(mean(await recalls('equal', records, questions, 100))).toBeGreaterThan(0.95);
    const filtered = await recalls('equal', records, questions, 10, {
      filter: 'third < 1',
      matches: ({ metadata }) => metadata.third === 0,
    });
    expect(mean(filtered)).toBeGreaterThan(0.95);
  });

  test('one that is changed, replaced or deleted is no longer found there', async () => {
    const ask = async (vector: number[]) =>
      ((await index('/query/equal', { vector, topK: 1_000 })).result as Found[]).map(({ id }) => id);
    const other = elsewhere[0] as number[];
    const copy = String(COUNT - 2);
    expect((await index('/update/equal', { id: copy, vector: other })).result).toEqual({ updated: 1 });
    expect((await ask(other))[0]).toBe(copy);
    expect((await index('/update/equal', { id: copy, vector: equal })).result).toEqual({ updated: 1 });
    expect((await ask(other))[0]).not.toBe(copy);
    await index('/upsert/equal', { id: copy, vector: other });
    expect((await ask(other))[0]).toBe(copy);
    // all that the graph holds of them go, and some of the others
    const gone = records.slice(0, 1_000).map(({ id }) => id);
    expect((await index('/delete/equal', { ids: gone })).result).toEqual({ deleted: 1_000 });
    const left = records.slice(1_000).filter(({ id }) => id !== copy);
    const shares = await recalls('equal', [...left, { id: copy, vector: other, metadata: {} }], beside, 10);
    expect(mean(shares)).toBeGreaterThan(0.98);
  });

  test('those that records get one by one, by updates, do not hide the others', async () => {
    const some = records.filter((_, n) => n % 2 === 1).slice(0, 3_000);
    await store('updated', some);
    const changed = some.slice(0, 1_200).map((record) => ({ ...record, vector: equal }));
    for (let i = 0; i < changed.length; i += 20)
      await Promise.all(
        changed.slice(i, i + 20).map(async ({ id, vector }) => {
          expect((await index('/update/updated', { id, vector })).result).toEqual({ updated: 1 });
        }),
      );
    const left = [...changed, ...some.slice(1_200)];
    for (const questions of [beside, elsewhere])
      expect(mean(await recalls('updated', left, questions, 10))).toBeGreaterThan(0.98);
  });

  test('in many small groups they hide nothing either', async () => {
    const groups = Array.from({ length: COUNT / 100 }, text);
    const some = Array.from({ length: COUNT }, (_, n): Stored => {
      const vector = groups[n % groups.length] as number[];
      return { id: String(n), vector, metadata: {} };
    });
    await store('groups', some);
    for (const topK of [10, 100]) {
      const shares = await recalls('groups', some, [...beside, ...elsewhere], topK);
      expect(mean(shares)).toBeGreaterThan(0.98);
    }
  });

  test('those whose records have gone are not kept for ever', async () => {
    const known = () =>
      withPostgres(async (client) => {
        const { rows } = await client.query<{ n: number }>(
          `select count(*)::int as n from ${SCHEMA}.repeated_1 r join ${SCHEMA}.namespaces n on n.id = r.namespace_id where n.name = 'gone'`,
        );
        return rows[0]?.n ?? 0;
      });
    const rounds = 40;
    for (let round = 0; round < rounds; round++) {
      const some = Array.from({ length: 10 }, text).flatMap((vector, g) =>
        Array.from({ length: 12 }, (_, n): Stored => ({ id: `${g}-${n}`, vector, metadata: {} })),
      );
      expect((await index('/upsert/gone', some)).status).toBe(200);
      // those of this round, and what is left of all before
      expect(await known()).toBeGreaterThanOrEqual(10);
      expect(await known()).toBeLessThan(40);
      expect((await index('/delete/gone', { ids: some.map(({ id }) => id) })).result).toEqual({
        deleted: 120,
      });
    }
  });

  test('those that were there before a gateway that looks for them leave the graph when it is built', async () => {
    await withPostgres(async (client) => {
      const { rows } = await client.query<{ name: string; text: string }>(
        `select c.relname as name from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am a on a.oid = c.relam
         join ${SCHEMA}.namespaces n on c.relname ~ ('_ns' || n.id || '_')
         where a.amname = 'hnsw' and n.name = 'equal' and i.indrelid = '${SCHEMA}.records_1'::regclass`,
      );
      await client.query(`drop index ${SCHEMA}.${rows[0]?.name}`);
      await client.query(`update ${SCHEMA}.records_1 set is_repeated = false`);
      await client.query(`truncate ${SCHEMA}.repeated_1`);
      await client.query(
        `update ${SCHEMA}.namespaces set repeats = false, hnsw = false where name = 'equal'`,
      );
    });
    await gateway.stop();
    await startAgain();
    await store('equal', [{ id: 'new', vector: elsewhere[1] as number[], metadata: { n: 0, third: 1 } }]);
    const { rows } = await withPostgres((client) =>
      client.query(`select count(*)::int as n from ${SCHEMA}.records_1 where is_repeated`),
    );
    expect(rows[0].n).toBeGreaterThan(3_000);
  });
});
