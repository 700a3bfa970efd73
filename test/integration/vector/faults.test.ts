import pg from 'pg';
import { type BackendControl, backend } from '../../support/backend.js';
import { backendAddress } from '../../support/environment.js';
import { eventually, PROMPT_MS } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { OPERATOR_VARIABLES, operatorPage } from '../../support/operator.js';
import { TOKENS } from '../../support/tokens.js';
import { dropSchema, vectorCaller, withPostgres } from '../../support/vector.js';

const SCHEMA = 'test_vector_faults';
const postgres: BackendControl = backend('postgres');
const vector = [1, 2, 3];
const gateways: RunningGateway[] = [];

interface Options {
  index?: Record<string, unknown>;
  database?: Record<string, unknown>;
}

async function start({ index = {}, database = {} }: Options = {}): Promise<RunningGateway> {
  const section = {
    database: { schema: SCHEMA, ...database },
    indexes: [{ dimension: 3, token: TOKENS.vector, ...index }],
  };
  const gateway = await startGateway({ vector: section }, OPERATOR_VARIABLES);
  gateways.push(gateway);
  return gateway;
}

async function stopAll(): Promise<void> {
  for (const gateway of gateways.splice(0)) await gateway.stop();
}

const caller = (gateway: RunningGateway) => vectorCaller(`${gateway.url}/vector`);

const readyz = (gateway: RunningGateway) => operatorPage(gateway.url, '/readyz');

const count = (result: unknown) => (result as { vectorCount: number }).vectorCount;

beforeAll(() => dropSchema(SCHEMA));
afterEach(stopAll);
afterAll(async () => {
  // a test that failed may have left it paused or down
  await postgres.resume().catch(() => undefined);
  await postgres.start();
  await dropSchema(SCHEMA);
});

test('several gateways may start at once on an empty database, and keep what is there later', async () => {
  const started = await Promise.all(Array.from({ length: 4 }, () => start()));
  const replies = await Promise.all(
    started.map((gateway, i) => caller(gateway)('/upsert', { id: i, vector })),
  );
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  await stopAll();
  expect(count((await caller(await start())('/info')).result)).toBe(4);
});

test('tables that are dropped while it runs are made again, and what is left of them is not touched', async () => {
  await dropSchema(SCHEMA);
  const gateway = await start();
  const call = caller(gateway);
  await call('/upsert', { id: 1, vector });
  await dropSchema(SCHEMA);
  await eventually(async () => expect((await call('/upsert', { id: 2, vector })).status).toBe(200));
  expect(count((await call('/info')).result)).toBe(1);
  // one of them alone: what the others hold is somebody's data
  await withPostgres((client) => client.query(`drop table ${SCHEMA}.resumable_queries, ${SCHEMA}.records_1`));
  await eventually(async () => {
    expect((await call('/upsert', { id: 3, vector })).status).toBe(503);
    const page = await readyz(gateway);
    expect([page.status, page.text]).toEqual([503, expect.stringMatching(/records_1|resumable_queries/)]);
  });
  await dropSchema(SCHEMA);
  await eventually(async () => expect((await call('/upsert', { id: 4, vector })).status).toBe(200));
  await eventually(async () => expect((await readyz(gateway)).status).toBe(200));
});

test('an index that disagrees with its table is not served, the others are; nothing is changed', async () => {
  await caller(await start())('/upsert', { id: 1, vector });
  await stopAll();
  const other = { name: 'other', path: '/other', dimension: 2, token: TOKENS.vector };
  const indexes = [{ dimension: 4, similarity: 'EUCLIDEAN', token: TOKENS.vector }, other];
  const section = { database: { schema: SCHEMA }, indexes };
  const gateway = await startGateway({ vector: section }, OPERATOR_VARIABLES);
  gateways.push(gateway);
  const reason =
    /existing index default has dimension 3, not 4 and similarity COSINE, not EUCLIDEAN as the configuration says/;
  const refused = await caller(gateway)('/upsert', { id: 2, vector: [1, 2, 3, 4] });
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  expect(refused.error).toBe('The index is not available.');
  const health = await readyz(gateway);
  expect([health.status, health.text]).toEqual([503, expect.stringMatching(reason)]);
  expect((await vectorCaller(`${gateway.url}/other`)('/upsert', { id: 1, vector: [1, 2] })).status).toBe(200);
  await stopAll();
  expect(count((await caller(await start())('/info')).result)).toBeGreaterThan(0);
});

test('a statement that runs too long is cancelled in Postgres and answered 504; later ones work', async () => {
  const gateway = await start({ database: { statementTimeoutMs: 3_000, poolSize: 2 } });
  const call = caller(gateway);
  await call('/upsert/locked', { id: 1, vector });
  await withPostgres(async (client) => {
    await client.query('begin');
    await client.query(`select 1 from ${SCHEMA}.namespaces where name = 'locked' for update`);
    const startedAt = performance.now();
    const blocked = await call('/upsert/locked', { id: 2, vector });
    expect(blocked.status).toBe(504);
    expect(performance.now() - startedAt).toBeLessThan(PROMPT_MS);
    const { rows } = await client.query(
      "select 1 from pg_stat_activity where application_name = 'portico vector' and state <> 'idle'",
    );
    expect(rows).toEqual([]);
    await client.query('rollback');
  });
  expect((await call('/upsert/locked', { id: 2, vector })).status).toBe(200);
});

test('a request whose own deadline is shorter, and one whose client leaves, are cancelled in Postgres', async () => {
  const gateway = await start({
    index: { timeoutMs: 4_000 },
    database: { statementTimeoutMs: 20_000, poolSize: 2 },
  });
  const call = caller(gateway);
  await call('/upsert/held', { id: 1, vector });
  const running = () =>
    withPostgres(async (client) => {
      const { rows } = await client.query(
        "select 1 from pg_stat_activity where application_name = 'portico vector' and wait_event_type = 'Lock'",
      );
      return rows.length;
    });
  await withPostgres(async (client) => {
    await client.query('begin');
    await client.query(`select 1 from ${SCHEMA}.namespaces where name = 'held' for update`);
    // one more than there are connections: the last one waits in the gateway
    const late = await Promise.all([1, 2, 3].map((id) => call('/upsert/held', { id, vector })));
    expect(late.map(({ status }) => status)).toEqual([504, 504, 504]);
    await eventually(async () => expect(await running()).toBe(0));
    const controller = new AbortController();
    const left = fetch(`${gateway.url}/vector/upsert/held`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKENS.vector}` },
      body: JSON.stringify({ id: 9, vector }),
      signal: controller.signal,
    });
    await eventually(async () => expect(await running()).toBe(1));
    controller.abort();
    await expect(left).rejects.toThrow();
    await eventually(async () => expect(await running()).toBe(0));
    await client.query('rollback');
  });
  expect((await call('/fetch/held', ['1', '2', '3', '9'])).result).toEqual([{ id: '1' }, null, null, null]);
  expect((await call('/upsert/held', { id: 2, vector })).status).toBe(200);
});

test.each<[string, Record<string, unknown>, RegExp]>([
  ['type', { type: 'HYBRID' }, /existing index default has type DENSE, not HYBRID as the configuration says/],
  ['storage', { storage: 'halfvec' }, /has storage vector, not halfvec/],
  [
    'everything',
    { type: 'SPARSE' },
    /has type DENSE, not SPARSE and dimension 3, not none and similarity COSINE, not none/,
  ],
])('an index of another %s is refused and left as it is', async (_name, change, reason) => {
  await caller(await start())('/upsert/kept', { id: 1, vector });
  await stopAll();
  const gateway = await start({ index: change });
  const refused = await caller(gateway)('/info');
  expect([refused.status, refused.error]).toEqual([503, 'The index is not available.']);
  expect((await readyz(gateway)).text).toMatch(reason);
  await stopAll();
  expect((await caller(await start())('/fetch/kept', ['1'])).result).toEqual([{ id: '1' }]);
});

test('tables of the first version are brought to the present one and keep their records', async () => {
  const schema = `${SCHEMA}_old`;
  await dropSchema(schema);
  await withPostgres(async (client) => {
    await client.query(`create schema ${schema};
      create table ${schema}.migrations (id int primary key, name text not null, at timestamptz not null default now());
      insert into ${schema}.migrations values (1, 'indexes and namespaces');
      create table ${schema}.indexes (id int generated always as identity primary key, name text collate "C" not null unique,
        dimension int not null, similarity text not null, created_at timestamptz not null default now());
      create table ${schema}.namespaces (id int generated always as identity primary key,
        index_id int not null references ${schema}.indexes (id), name text collate "C" not null,
        next_row bigint not null default 0, record_count bigint not null default 0, unique (index_id, name)) with (fillfactor = 50);
      create table ${schema}.records_1 (namespace_id int not null, row bigint not null, id text collate "C" not null,
        vec vector(3) not null, metadata jsonb not null default '{}', has_metadata boolean not null, data text,
        primary key (namespace_id, id), unique (namespace_id, row));
      create index on ${schema}.records_1 using hnsw (vec vector_cosine_ops);
      insert into ${schema}.indexes (name, dimension, similarity) values ('default', 3, 'COSINE');
      insert into ${schema}.namespaces (index_id, name, next_row, record_count) values (1, '', 2, 2);
      insert into ${schema}.records_1 values (1, 0, 'a', '[1,2,3]', '{"x":1}', true, 'text'), (1, 1, 'b', '[3,2,1]', '{}', false, null);`);
  });
  try {
    const started = await Promise.all([1, 2].map(() => start({ database: { schema } })));
    for (const gateway of started) {
      const { result } = await caller(gateway)('/query', {
        vector,
        filter: 'x = 1',
        includeMetadata: true,
        includeData: true,
      });
      expect(result).toEqual([{ id: 'a', score: 1, metadata: { x: 1 }, data: 'text' }]);
    }
    // the one graph of all namespaces gives way to one a namespace
    await eventually(async () => {
      const { rows } = await withPostgres((client) =>
        client.query(
          "select 1 from pg_class c join pg_am a on a.oid = c.relam where amname = 'hnsw' and relnamespace = $1::regnamespace",
          [schema],
        ),
      );
      expect(rows).toEqual([]);
    });
  } finally {
    await stopAll();
    await dropSchema(schema);
  }
});

test('Postgres out of connections: 503, and served when there are some again', async () => {
  const clients: pg.Client[] = [];
  const open = async () => {
    const client = new pg.Client({ connectionString: backendAddress('PORTICO_DATABASE_URL') });
    client.on('error', () => undefined);
    await client.connect();
    clients.push(client);
  };
  const gateway = await start();
  const fill = async (): Promise<void> => {
    // at most so many, whatever max_connections is
    while (clients.length < 500) await open();
  };
  try {
    // connections that others give back meanwhile are taken, too
    await eventually(async () => {
      await expect(fill()).rejects.toMatchObject({ code: '53300' });
      const replies = await Promise.all(
        Array.from({ length: 10 }, () => caller(gateway)('/query', { vector })),
      );
      const refused = replies.filter(({ status }) => status !== 200);
      expect(refused.length).toBeGreaterThan(0);
      for (const { status, headers } of refused)
        expect([status, headers.get('retry-after')]).toEqual([503, '1']);
    });
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
  await eventually(async () => expect((await caller(gateway)('/query', { vector })).status).toBe(200));
});

test('more requests than connections wait for their turn', async () => {
  const gateway = await start({ database: { poolSize: 2 } });
  const call = caller(gateway);
  const batch = Array.from({ length: 50 }, (_, i) => ({ id: i, vector: [1, i, 1] }));
  const replies = await Promise.all(
    Array.from({ length: 60 }, (_, i) =>
      i % 2 === 0 ? call('/upsert/busy', batch) : call('/query/busy', { vector }),
    ),
  );
  expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200));
});

test('Postgres killed under load: 503 at once, all of a batch or nothing, and back without a restart', async () => {
  const gateway = await start();
  const call = caller(gateway);
  const size = 200;
  const acknowledged = new Set<number>();
  let running = true;
  const writer = async (k: number) => {
    for (let i = k; running; i += 4) {
      const batch = Array.from({ length: size }, (_, n) => ({ id: `${i}-${n}`, vector: [1, i, n] }));
      const reply = await call(`/upsert/crash-${i}`, batch);
      if (reply.status === 200) acknowledged.add(i);
      else expect(reply.status).toBe(503);
    }
  };
  const writers = [0, 1, 2, 3].map(writer);
  await eventually(() => expect(acknowledged.size).toBeGreaterThan(4));
  await postgres.kill();
  const replies = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const startedAt = performance.now();
      const { status, headers } = await call('/query', { vector });
      return { status, retry: headers.get('retry-after'), fast: performance.now() - startedAt < 2_000 };
    }),
  );
  expect(replies).toEqual(replies.map(() => ({ status: 503, retry: '1', fast: true })));
  running = false;
  await Promise.all(writers);
  expect((await readyz(gateway)).status).toBe(503);
  await postgres.start();
  const { result } = await eventually(async () => {
    const reply = await call('/info');
    expect(reply.status).toBe(200);
    return reply;
  });
  const { namespaces } = result as { namespaces: Record<string, { vectorCount: number }> };
  const crashed = Object.entries(namespaces).filter(([name]) => name.startsWith('crash-'));
  expect(crashed.map(([, { vectorCount }]) => vectorCount)).toEqual(crashed.map(() => size));
  for (const i of acknowledged) expect(namespaces[`crash-${i}`]).toBeDefined();
  expect((await call('/upsert', { id: 'after', vector })).status).toBe(200);
});

test('Postgres down at the start: 503 within 2 s, and served as soon as it is there', async () => {
  await postgres.kill();
  const gateway = await start();
  const call = caller(gateway);
  const startedAt = performance.now();
  const reply = await call('/query', { vector });
  expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '1']);
  expect(performance.now() - startedAt).toBeLessThan(PROMPT_MS);
  expect((await call('/query', { vector }, { token: 'wrong' })).status).toBe(401);
  expect((await readyz(gateway)).text).not.toContain(
    new URL(backendAddress('PORTICO_DATABASE_URL')).password,
  );
  await postgres.start();
  await eventually(async () => expect((await call('/query', { vector })).status).toBe(200));
});

test('Postgres paused: nothing hangs beyond the deadline; after it every request works again', async () => {
  const gateway = await start({ index: { timeoutMs: 4_000 }, database: { statementTimeoutMs: 3_000 } });
  const call = caller(gateway);
  expect((await call('/upsert', { id: 1, vector })).status).toBe(200);
  await postgres.pause();
  const startedAt = performance.now();
  const replies = await Promise.all(
    Array.from({ length: 30 }, (_, i) =>
      i % 2 === 0 ? call('/query', { vector }) : call('/upsert', { id: i, vector }),
    ),
  );
  const took = performance.now() - startedAt;
  await postgres.resume();
  for (const { status } of replies) expect([503, 504]).toContain(status);
  expect(took).toBeLessThan(4_000 + PROMPT_MS);
  await eventually(async () => expect((await call('/query', { vector })).status).toBe(200));
});

test('Postgres paused at the start: 503 within 2 s for everybody who asks', async () => {
  await postgres.pause();
  const gateway = await start();
  const call = caller(gateway);
  const startedAt = performance.now();
  const replies = await Promise.all(Array.from({ length: 30 }, () => call('/query', { vector })));
  expect(performance.now() - startedAt).toBeLessThan(PROMPT_MS);
  expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 503));
  await postgres.resume();
  await eventually(async () => expect((await call('/query', { vector })).status).toBe(200));
});
