import type { IndexShape } from '../../../src/services/vector/statements/index-shape.js';
import {
  addPostingsText,
  deleteText,
  dropPostingsText,
} from '../../../src/services/vector/statements/write-statements.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller, withPostgres } from '../../support/vector.js';

const SCHEMA = 'test_vector_sparse_plans';
const BATCH = 200;
const RECORDS = 5 * BATCH;
const INDICES = 10;

let gateway: RunningGateway;
let shape: IndexShape;
let namespaceId: number;

/** The tables of a namespace that Postgres' statistics know nothing of, as after every import until it gets round to them. */
beforeAll(async () => {
  await dropSchema(SCHEMA);
  gateway = await startGateway({
    vector: {
      database: { schema: SCHEMA },
      indexes: [{ name: 'sparse', path: '/sparse', type: 'SPARSE', token: TOKENS.vector }],
    },
  });
  const call = vectorCaller(`${gateway.url}/sparse`);
  expect((await call('/upsert', recordsFrom(0, BATCH))).result).toBe('Success');
  await withPostgres(async (client) => {
    const { rows } = await client.query(`select id from ${SCHEMA}.indexes`);
    const indexId = Number(rows[0].id);
    const [records, postings] = [`${SCHEMA}.records_${indexId}`, `${SCHEMA}.postings_${indexId}`];
    const names = {
      namespaces: `${SCHEMA}.namespaces`,
      resumableQueries: `${SCHEMA}.resumable_queries`,
      droppedNamespaces: `${SCHEMA}.dropped_namespaces`,
    };
    shape = { indexId, records, postings, repeated: '', ...names, dense: undefined, sparse: true };
    await client.query(`analyze ${records}, ${postings}`);
    for (const table of [records, postings])
      await client.query(`alter table ${table} set (autovacuum_enabled = false)`);
  });
  for (let start = 0; start < RECORDS; start += BATCH)
    expect((await call('/upsert/new', recordsFrom(start, BATCH))).result).toBe('Success');
  namespaceId = await withPostgres(
    async (client) =>
      (await client.query(`select id from ${SCHEMA}.namespaces where name = 'new'`)).rows[0].id as number,
  );
});

afterAll(async () => {
  await gateway.stop();
  await dropSchema(SCHEMA);
});

const idsFrom = (start: number, count: number) => Array.from({ length: count }, (_, i) => `r${start + i}`);

function recordsFrom(start: number, count: number): object[] {
  return idsFrom(start, count).map((id, i) => ({
    id,
    sparseVector: {
      indices: Array.from({ length: INDICES }, (_, k) => (start + i) * 7 + k * 101),
      values: Array.from({ length: INDICES }, () => 1),
    },
  }));
}

interface Plan {
  readonly [key: string]: unknown;
  readonly Plans?: readonly Plan[];
}

/** Rows that a plan's steps met, kept or not. */
function rowsMet(plan: Plan): number {
  const loops = Number(plan['Actual Loops']);
  const own = Object.entries(plan)
    .filter(([key]) => key === 'Actual Rows' || key.startsWith('Rows Removed by'))
    .reduce((sum, [, rows]) => sum + Number(rows) * loops, 0);
  return (plan.Plans ?? []).reduce((sum, inner) => sum + rowsMet(inner), own);
}

/** Runs the statements in a transaction that is rolled back. @returns the rows that the last one met */
async function met(statements: readonly (readonly [string, readonly unknown[]])[]): Promise<number> {
  return withPostgres(async (client) => {
    let plan: Plan = {};
    await client.query('begin');
    for (const [text, values] of statements) {
      const { rows } = await client.query(`explain (analyze, format json) ${text}`, [...values]);
      plan = rows[0]['QUERY PLAN'][0].Plan as Plan;
    }
    await client.query('rollback');
    return rowsMet(plan);
  });
}

const ids = idsFrom(100, BATCH);
const drop = () => [dropPostingsText(shape), [namespaceId, ids]] as const;

// each posting goes through a handful of steps; all postings of the namespace for each id would be 2,000,000
const ENOUGH = 20 * BATCH * INDICES;

test('what an upsert and an update do with postings grows with their own size, not with that of the namespace', async () => {
  expect(await met([drop()])).toBeLessThan(ENOUGH);
  const postings = ids.flatMap((_, i) => Array.from({ length: INDICES }, (_, k) => [i + 1, i * 7 + k * 101]));
  const add = [
    addPostingsText(shape),
    [
      namespaceId,
      ids,
      postings.map(([place]) => place),
      postings.map(([, index]) => index),
      postings.map(() => 1),
    ],
  ] as const;
  expect(await met([drop(), add])).toBeLessThan(ENOUGH);
});

test('so does what a delete does', async () => {
  expect(await met([[deleteText(shape, 'id = any($2::text[])'), [namespaceId, ids]]])).toBeLessThan(ENOUGH);
});
