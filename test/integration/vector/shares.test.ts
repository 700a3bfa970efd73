import pg from 'pg';
import { backend } from '../../support/backend.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller, withPostgres } from '../../support/vector.js';

const SCHEMA = 'test_vector_shares';
const READ_ONLY = TOKENS.vectorReadOnly;
const vector = [1, 2, 3];
const postgres = backend('postgres');
let gateway: RunningGateway;

const index = (name: string) => ({
  name,
  path: `/${name}`,
  dimension: 3,
  token: TOKENS.vector,
  readOnlyToken: READ_ONLY,
  maxResumableQueries: 4,
});
const at = (name: string) => vectorCaller(`${gateway.url}/${name}`);

beforeAll(async () => {
  await dropSchema(SCHEMA);
  gateway = await startGateway({
    vector: { database: { schema: SCHEMA, poolSize: 5 }, indexes: [index('one'), index('two')] },
  });
  for (const name of ['one', 'two']) await at(name)('/upsert', { id: 'a', vector });
});

afterAll(async () => {
  await postgres.resume().catch(() => undefined);
  await gateway.stop();
  await dropSchema(SCHEMA);
});

/** Everything that reads or writes the records of an index waits as long as `work` takes. */
async function whileLocked(what: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  await withPostgres(async (client) => {
    await client.query('begin');
    await client.query(what);
    try {
      await work(client);
    } finally {
      await client.query('rollback');
    }
  });
}

const tableOf = async (name: string) =>
  withPostgres(async (client) => {
    const { rows } = await client.query<{ id: number }>(`select id from ${SCHEMA}.indexes where name = $1`, [
      name,
    ]);
    return `${pg.escapeIdentifier(SCHEMA)}.records_${rows[0]?.id}`;
  });

const waitingInPostgres = async (client: pg.Client) => {
  // within a transaction the first look would be all that is ever seen
  await client.query('select pg_stat_clear_snapshot()');
  const { rows } = await client.query(
    "select 1 from pg_stat_activity where application_name = 'portico vector' and wait_event_type = 'Lock'",
  );
  return rows.length;
};

/** Requests that wait until they are aborted; one that a busy machine refuses, with 503, is sent again. */
async function hang(
  count: number,
  request: (i: number) => [path: string, token: string, body: unknown],
  signal: AbortSignal,
): Promise<void> {
  const one = async (i: number) => {
    const [path, token, body] = request(i);
    const headers = { authorization: `Bearer ${token}` };
    while (!signal.aborted) {
      await fetch(gateway.url + path, { method: 'POST', headers, body: JSON.stringify(body), signal })
        .then((reply) => reply.arrayBuffer())
        .catch(() => undefined);
    }
  };
  await Promise.all(Array.from({ length: count }, (_, i) => one(i)));
}

test('an index whose queries hang leaves connections to the others, and readiness sees that Postgres answers', async () => {
  const table = await tableOf('one');
  await whileLocked(`lock table ${table} in access exclusive mode`, async (client) => {
    const given = new AbortController();
    const hanging = hang(60, () => ['/one/query', READ_ONLY, { vector }], given.signal);
    await eventually(async () => expect(await waitingInPostgres(client)).toBeGreaterThan(1));
    for (let i = 0; i < 20; i++)
      expect((await at('two')('/query', { vector, topK: 1 })).result).toEqual([{ id: 'a', score: 1 }]);
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
    given.abort();
    await hanging;
  });
  await eventually(async () => expect((await at('one')('/query', { vector })).status).toBe(200));
});

test("one token's writes that hang leave connections to its own reads", async () => {
  await at('one')('/upsert/held', { id: 'a', vector });
  const held = `select 1 from ${SCHEMA}.namespaces where name = 'held' for update`;
  await whileLocked(held, async (client) => {
    const given = new AbortController();
    const hanging = hang(30, (i) => ['/one/upsert/held', TOKENS.vector, { id: i, vector }], given.signal);
    await eventually(async () => expect(await waitingInPostgres(client)).toBeGreaterThan(1));
    expect((await at('one')('/fetch/held', ['a'])).result).toEqual([{ id: 'a' }]);
    given.abort();
    await hanging;
  });
});

test('a token opens its half of the resumable queries, and the other token still has its own', async () => {
  const open = (token: string) => at('one')('/resumable-query', { vector, topK: 1 }, { token });
  expect([(await open(READ_ONLY)).status, (await open(READ_ONLY)).status]).toEqual([200, 200]);
  const refused = await open(READ_ONLY);
  expect([refused.status, refused.error]).toEqual([
    429,
    'This token has 2 resumable queries open, as many as it may.',
  ]);
  expect([(await open(TOKENS.vector)).status, (await open(TOKENS.vector)).status]).toEqual([200, 200]);
  expect((await open(TOKENS.vector)).status).toBe(429);
});

test('a Postgres that is stopped while statements run: 503 long before their time limit, also for those who wait', async () => {
  const body = JSON.stringify({ vector });
  // fills the pool, so that there are connections that look usable
  await Promise.all(Array.from({ length: 20 }, () => at('two')('/query', { vector })));
  await postgres.pause();
  try {
    const startedAt = performance.now();
    const replies = await Promise.all(
      Array.from({ length: 40 }, () =>
        fetch(`${gateway.url}/two/query`, {
          method: 'POST',
          headers: { authorization: `Bearer ${TOKENS.vector}` },
          body,
        }),
      ),
    );
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 503));
    expect(await replies[0]?.json()).toEqual({ error: 'Postgres is not available.', status: 503 });
    // the time limit of a statement is 25 s
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  } finally {
    await postgres.resume();
  }
  await eventually(async () => expect((await at('two')('/query', { vector })).status).toBe(200));
});
