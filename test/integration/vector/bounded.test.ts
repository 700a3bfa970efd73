import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller, withPostgres } from '../../support/vector.js';

const SCHEMA = 'test_vector_bounded';
const RECORDS = 12_000;
/** Rows that a single statement may delete: above what a step takes, below what there is. */
const MOST_ROWS = 5_000;
const MOST_POSTINGS = 20_000;

let gateway: RunningGateway;
/** Number of each index's tables. */
let numbers: Record<string, number>;
const at = (name: string) => vectorCaller(`${gateway.url}/${name}`);

beforeAll(async () => {
  await dropSchema(SCHEMA);
  const common = { dimension: 2, token: TOKENS.vector, hnsw: { enabled: false } };
  gateway = await startGateway({
    vector: {
      database: { schema: SCHEMA },
      indexes: [
        { ...common, name: 'dense', path: '/dense' },
        { ...common, name: 'hybrid', path: '/hybrid', type: 'HYBRID' },
      ],
    },
  });
  // Postgres itself says when a statement deletes more: no verdict hangs on how long that took
  for (const name of ['dense', 'hybrid']) await at(name)('/upsert/other', record(name, 'kept'));
  await withPostgres(async (client) => {
    const { rows } = await client.query<{ name: string; id: number }>(
      `select name, id from ${SCHEMA}.indexes`,
    );
    numbers = Object.fromEntries(rows.map(({ name, id }) => [name, id]));
    await client.query(`create function ${SCHEMA}.bounded() returns trigger language plpgsql as $$ begin
      if (select count(*) from gone) > tg_argv[0]::int then raise exception 'too many rows at once'; end if;
      return null; end $$`);
    for (const [table, most] of [
      [`records_${numbers.dense}`, MOST_ROWS],
      [`records_${numbers.hybrid}`, MOST_ROWS],
      [`postings_${numbers.hybrid}`, MOST_POSTINGS],
    ] as const)
      await client.query(`create trigger bounded after delete on ${SCHEMA}.${table} referencing old table as gone
        for each statement execute function ${SCHEMA}.bounded('${most}')`);
  });
});

afterAll(async () => {
  await gateway.stop();
  await dropSchema(SCHEMA);
});

function record(index: string, id: string) {
  const sparse = index === 'hybrid' ? { sparseVector: { indices: [7], values: [1] } } : {};
  return { id, vector: [1, 0], ...sparse };
}

/** Fills a namespace without the gateway. Each record has its number, and three postings where there are any. */
async function fill(index: string, namespace: string): Promise<void> {
  await at(index)(`/reset/${namespace}`);
  await at(index)(`/upsert/${namespace}`, record(index, 'first'));
  const table = numbers[index];
  const [columns, values] =
    index === 'dense' ? ['', ''] : [', sparse_indices, sparse_values', ", '{1,2,3}', '{1,1,1}'"];
  await withPostgres(async (client) => {
    const { rows } = await client.query<{ id: number }>(
      `update ${SCHEMA}.namespaces set next_row = ${RECORDS}, record_count = ${RECORDS}
       where index_id = ${table} and name = $1 returning id`,
      [namespace],
    );
    await client.query(
      `insert into ${SCHEMA}.records_${table} (namespace_id, row, id, vec, metadata, has_metadata${columns})
       select $1, i, 'r' || i, '[1,1]', jsonb_build_object('n', i), true${values} from generate_series(1, ${RECORDS - 1}) as i`,
      [rows[0]?.id],
    );
    if (index === 'hybrid')
      await client.query(
        `insert into ${SCHEMA}.postings_${table} select $1, d, i, 1 from generate_series(1, ${RECORDS - 1}) as i, generate_series(1, 3) as d`,
        [rows[0]?.id],
      );
  });
}

const left = (index: string, namespace: string) =>
  at(index)('/info').then(
    ({ result }) =>
      (result as { namespaces: Record<string, { vectorCount: number } | undefined> }).namespaces[namespace]
        ?.vectorCount,
  );

/** Rows of a table, whatever namespace they are of. */
const rowsOf = (table: string) =>
  withPostgres(async (client) => {
    const { rows } = await client.query<{ n: string }>(`select count(*) as n from ${SCHEMA}.${table}`);
    return Number(rows[0]?.n);
  });

describe.each(['dense', 'hybrid'])('%s: no statement takes more than a step', (index) => {
  beforeAll(() => fill(index, 'many'));

  test('deleting by filter, prefix and ids takes all that is meant and nothing else', async () => {
    const remove = async (body: unknown) => (await at(index)('/delete/many', body)).result;
    expect(await remove({ filter: 'n >= 1000 AND n != 2000' })).toEqual({ deleted: RECORDS - 1_001 });
    expect(await left(index, 'many')).toBe(1_001);
    expect((await at(index)('/fetch/many', ['first', 'r999', 'r1000', 'r2000', 'r11999'])).result).toEqual([
      { id: 'first' },
      { id: 'r999' },
      null,
      { id: 'r2000' },
      null,
    ]);
    expect(await remove({ filter: 'n = 2000' })).toEqual({ deleted: 1 });
    await fill(index, 'many');
    expect(await remove({ prefix: 'r' })).toEqual({ deleted: RECORDS - 1 });
    expect(await left(index, 'many')).toBe(1);
    await fill(index, 'many');
    const ids = Array.from({ length: RECORDS }, (_, i) => `r${i}`);
    expect(await remove({ ids })).toEqual({ deleted: RECORDS - 1 });
    expect((await at(index)('/range/many', {})).result).toEqual({
      nextCursor: '',
      vectors: [{ id: 'first' }],
    });
  });

  test('emptying, deleting and replacing a namespace is done at once, and its rows go in the background', async () => {
    const table = `records_${numbers[index]}`;
    for (const call of [
      () => at(index)('/reset/many'),
      () => at(index)('/delete-namespace/many'),
      () => at(index)('/rename-namespace', { namespace: 'new', newNamespace: 'many', deleteExisting: true }),
      () => at(index)('/reset?all'),
    ]) {
      await fill(index, 'many');
      await at(index)('/upsert/new', record(index, 'n'));
      await at(index)('/upsert/other', record(index, 'kept'));
      expect((await call()).status).toBe(200);
      expect([0, 1, undefined]).toContain(await left(index, 'many'));
      expect(
        (await at(index)('/query/many', { ...record(index, ''), id: undefined, topK: 9 })).result,
      ).toHaveLength((await left(index, 'many')) ?? 0);
    }
    // reset?all came last, so the tables could be emptied: once more beside others' records
    await at(index)('/upsert/other', record(index, 'kept'));
    await fill(index, 'many');
    await at(index)('/reset/many');
    await eventually(async () => expect(await rowsOf(table)).toBe(1));
    if (index === 'hybrid') expect(await rowsOf(`postings_${numbers.hybrid}`)).toBe(1);
    await eventually(async () => expect(await rowsOf('dropped_namespaces')).toBe(0));
    expect((await at(index)('/fetch/other', ['kept'])).result).toEqual([{ id: 'kept' }]);
    expect((await at(index)('/upsert/many', record(index, 'again'))).status).toBe(200);
    expect((await at(index)('/range/many', { limit: 1 })).result).toEqual({
      nextCursor: '',
      vectors: [{ id: 'again' }],
    });
  });
});
