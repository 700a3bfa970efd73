import { EXACT_RECORDS } from '../../../src/services/vector/statements/dense-search.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller, withPostgres } from '../../support/vector.js';

const SCHEMA = 'test_vector_hnsw';
const DIMENSION = 16;
const COUNT = 2 * EXACT_RECORDS;

const gateways: RunningGateway[] = [];

async function start(index: Record<string, unknown> = {}): Promise<ReturnType<typeof vectorCaller>> {
  const gateway = await startGateway({
    vector: {
      database: { schema: SCHEMA },
      indexes: [{ dimension: DIMENSION, similarity: 'EUCLIDEAN', token: TOKENS.vector, ...index }],
    },
  });
  gateways.push(gateway);
  return vectorCaller(`${gateway.url}/vector`);
}

async function stopAll(): Promise<void> {
  for (const gateway of gateways.splice(0)) await gateway.stop();
}

/** Numbers from a fixed seed. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const random = generator(7);
const point = () => Array.from({ length: DIMENSION }, () => random() - 0.5);

interface Stored {
  id: string;
  vector: number[];
  metadata: { n: number };
}

const spaces: Record<string, Stored[]> = {};

const distance = (a: number[], b: number[]) => a.reduce((sum, x, i) => sum + (x - (b[i] as number)) ** 2, 0);

/** Ids of the ten nearest records that `matches`. */
function nearest(space: string, vector: number[], matches: (record: Stored) => boolean): string[] {
  return (spaces[space] as Stored[])
    .filter(matches)
    .sort((a, b) => distance(a.vector, vector) - distance(b.vector, vector))
    .slice(0, 10)
    .map(({ id }) => id);
}

interface HnswRow {
  name: string;
  space: string | null;
  flag: boolean | null;
}

const hnswIndexes = () =>
  withPostgres(async (client) => {
    const { rows } = await client.query<HnswRow>(
      `select c.relname as name, n.name as space, n.hnsw as flag from pg_class c
       join pg_am a on a.oid = c.relam and a.amname = 'hnsw' and c.relnamespace = $1::regnamespace
       left join ${SCHEMA}.namespaces n on c.relname ~ ('_ns' || n.id || '_') order by n.name`,
      [SCHEMA],
    );
    return rows;
  });

const graphsAre = (used: readonly boolean[]) =>
  eventually(async () => expect((await hnswIndexes()).map(({ flag }) => flag)).toEqual(used));

/** The planner's statistics know the namespaces of now and will not learn of others by themselves. */
const freezeStatistics = () =>
  withPostgres(async (client) => {
    await client.query(`alter table ${SCHEMA}.records_1 set (autovacuum_enabled = false)`);
    await client.query(`analyze ${SCHEMA}.records_1`);
  });

beforeAll(async () => {
  await dropSchema(SCHEMA);
  const index = await start();
  for (const name of ['one', 'two']) {
    spaces[name] = Array.from({ length: COUNT }, (_, n) => ({
      id: `${n}`,
      vector: point(),
      metadata: { n },
    }));
    for (let i = 0; i < COUNT; i += 1_000)
      expect((await index(`/upsert/${name}`, spaces[name].slice(i, i + 1_000))).status).toBe(200);
    await graphsAre(name === 'one' ? [true] : [true, true]);
    if (name === 'one') await freezeStatistics();
  }
});

afterAll(async () => {
  await stopAll();
  await dropSchema(SCHEMA);
});

interface Scans {
  whole: string;
  byIndex: string;
}

const tableScans = () =>
  withPostgres(async (client) => {
    const { rows } = await client.query<Scans>(
      `select seq_scan as whole, idx_scan as "byIndex" from pg_stat_user_tables where relid = '${SCHEMA}.records_1'::regclass`,
    );
    return rows[0] as Scans;
  });

async function recall(
  index: ReturnType<typeof vectorCaller>,
  space: string,
  extra: Record<string, unknown>,
  matches: (record: Stored) => boolean = () => true,
): Promise<number> {
  const questions = Array.from({ length: 40 }, point);
  // the first query of a gateway tells it of the HNSW index
  await index(`/query/${space}`, { vector: questions[0], topK: 1 });
  const { result, status } = await index(
    `/query/${space}`,
    questions.map((vector) => ({ vector, topK: 10, ...extra })),
  );
  expect(status).toBe(200);
  const found = (result as { id: string }[][]).map((list) => list.map(({ id }) => id));
  const hits = questions.map((vector, i) => {
    const truth = nearest(space, vector, matches);
    expect(found[i]).toHaveLength(truth.length);
    return truth.filter((id) => found[i]?.includes(id)).length / truth.length;
  });
  return hits.reduce((sum, hit) => sum + hit, 0) / hits.length;
}

/** Of the graph that was searched least. */
const scans = () =>
  withPostgres(async (client) => {
    const { rows } = await client.query<{ n: string }>(
      "select min(idx_scan) as n from pg_stat_user_indexes where schemaname = $1 and indexrelname ~ '^hnsw_'",
      [SCHEMA],
    );
    return Number(rows[0]?.n);
  });

test('each namespace is searched in a graph of its own, with high recall; ef and exact choose how thoroughly', async () => {
  const index = gateways[0] === undefined ? await start() : vectorCaller(`${gateways[0].url}/vector`);
  expect(await recall(index, 'one', {})).toBeGreaterThan(0.97);
  expect(await recall(index, 'two', {})).toBeGreaterThan(0.97);
  expect(await recall(index, 'one', { exact: true })).toBe(1);
  const coarse = await recall(index, 'one', { ef: 10 });
  const fine = await recall(index, 'one', { ef: 400 });
  expect(coarse).toBeLessThan(fine);
  expect(fine).toBeGreaterThan(0.99);
  for (const ef of [0, 1_001, 1.5, '10'])
    expect((await index('/query/one', { vector: point(), ef })).status).toBe(400);
  await stopAll();
  // Postgres reports a connection's statistics when it ends
  await eventually(async () => expect(await scans()).toBeGreaterThan(0));
});

test('filters of any selectivity fill topK wherever enough records match, few matches exactly', async () => {
  const index = await start();
  for (const share of [1, 2, 10, 100, 1_000]) {
    const matches = ({ metadata }: Stored) => metadata.n < COUNT / share;
    const filter = `n < ${COUNT / share}`;
    expect(await recall(index, 'one', { filter }, matches)).toBeGreaterThan(share <= 2 ? 0.97 : 0.9999);
  }
  const many = await index('/query/one', { vector: point(), topK: 500, filter: `n >= ${COUNT - 3_500}` });
  expect(many.result).toHaveLength(500);
  expect((await index('/query/one', { vector: point(), topK: 1_000 })).result).toHaveLength(1_000);
  expect((await index('/query/one', { vector: point(), topK: 1, filter: 'n < 0' })).result).toEqual([]);
});

test('another gateway, a renamed, an emptied and a deleted namespace: hints that are outdated change no result', async () => {
  const [first, second] = [await start(), await start()];
  const ask = async (index: typeof first, space: string) =>
    ((await index(`/query/${space}`, { vector: point(), topK: 3 })).result as unknown[]).length;
  for (const index of [first, second]) expect(await ask(index, 'two')).toBe(3);
  await first('/rename-namespace', { namespace: 'two', newNamespace: 'deux' });
  expect([await ask(second, 'two'), await ask(second, 'deux')]).toEqual([0, 3]);
  const filtered = { vector: point(), topK: 1, filter: 'n >= 0' };
  expect((await second('/query/deux', filtered)).result).toHaveLength(1);
  await first('/upsert/two', [{ id: 'only', vector: point() }]);
  expect((await second('/query/two', { ...filtered, filter: 'HAS NOT FIELD n' })).result).toHaveLength(1);
  expect(await ask(second, 'two')).toBe(1);
  await first('/delete-namespace/two', []);
  await first('/rename-namespace', { namespace: 'deux', newNamespace: 'two' });
  expect(await ask(second, 'two')).toBe(3);
});

test('other parameters lead to new graphs and then the old ones go; a lost one is built again; off means none', async () => {
  await stopAll();
  const before = (await hnswIndexes()).map(({ name }) => name);
  expect(before.map((name) => /m16_ef64$/.test(name))).toEqual([true, true]);
  await start({ hnsw: { m: 8, efConstruction: 32, buildMemory: 64 * 1024 * 1024 } });
  await eventually(async () => {
    const names = (await hnswIndexes()).map(({ name }) => name);
    expect(names.map((name) => /m8_ef32$/.test(name))).toEqual([true, true]);
  });
  await stopAll();
  const [left] = (await hnswIndexes()) as [HnswRow, HnswRow];
  await withPostgres(async (client) => {
    const { rows } = await client.query<{ text: string }>('select pg_get_indexdef($1::regclass) as text', [
      `${SCHEMA}.${left.name}`,
    ]);
    await client.query(`drop index ${SCHEMA}.${left.name}`);
    // a build that breaks off leaves an index that is not valid
    await client.query("set statement_timeout = '100ms'");
    const build = String(rows[0]?.text).replace('CREATE INDEX', 'CREATE INDEX CONCURRENTLY');
    await expect(client.query(build)).rejects.toThrow(/statement timeout/);
  });
  const valid = () =>
    withPostgres(async (client) => {
      const { rows } = await client.query<{ name: string }>(
        `select indexrelid::regclass::text as name from pg_index where indisvalid and indrelid = '${SCHEMA}.records_1'::regclass`,
      );
      return rows.some(({ name }) => name.endsWith(left.name));
    });
  expect(await valid()).toBe(false);
  await start({ hnsw: { m: 8, efConstruction: 32 } });
  await eventually(async () => expect(await valid()).toBe(true));
  await stopAll();
  const index = await start({ hnsw: { enabled: false } });
  await eventually(async () => expect(await hnswIndexes()).toEqual([]));
  expect(await recall(index, 'one', {})).toBe(1);
});

test('the graph of an import is left for later, and built when it is asked for; what it holds is found meanwhile', async () => {
  await stopAll();
  const index = await start({ hnsw: { m: 8, efConstruction: 32 } });
  const graphOf = async (space: string) => {
    const { result } = await index('/info?explain');
    return (result as { namespaces: Record<string, { graph: string; progress?: number }> }).namespaces[space];
  };
  await eventually(async () => expect((await graphOf('one'))?.graph).toBe('ready'));
  expect((await index('/graph/import', { defer: true })).result).toBe('Success');
  const records = spaces.one as Stored[];
  for (let i = 0; i < COUNT; i += 2_000)
    expect((await index('/upsert/import', records.slice(i, i + 2_000))).status).toBe(200);
  spaces.import = records;
  expect(await recall(index, 'import', {})).toBe(1);
  expect(await graphOf('import')).toMatchObject({ graph: 'deferred', vectorCount: COUNT });
  expect(await hnswIndexes()).toHaveLength(2);
  expect((await index('/graph/import', { defer: false })).result).toBe('Success');
  await eventually(async () => expect((await graphOf('import'))?.graph).toBe('ready'));
  // the graph of a namespace that is there goes, so that what comes does not wait for it
  await index('/graph/import', { defer: true });
  await eventually(async () => expect((await graphOf('import'))?.graph).toBe('deferred'));
  await eventually(async () => expect(await hnswIndexes()).toHaveLength(2));
  expect((await index('/graph/import', { later: true })).status).toBe(400);
  await index('/delete-namespace/import', []);
});

test('a small namespace beside large ones is read by its index, not with the whole table', async () => {
  // a build of a graph would read the table
  const index = await start({ hnsw: { enabled: false } });
  await index('/upsert/small', { id: 'a', vector: point() });
  const before = await tableScans();
  expect((await index('/query/small', { vector: point(), topK: 1 })).result).toHaveLength(1);
  await stopAll();
  // Postgres reports a connection's statistics when it ends
  await eventually(async () =>
    expect(Number((await tableScans()).byIndex)).toBeGreaterThan(Number(before.byIndex)),
  );
  expect((await tableScans()).whole).toBe(before.whole);
});
