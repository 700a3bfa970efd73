import { readFileSync } from 'node:fs';
import pg from 'pg';
import { backendAddress } from '../support/environment.js';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { kvCaller } from '../support/kv/kv.js';
import { TOKENS } from '../support/tokens.js';
import { vectorCaller } from '../support/vector.js';

/** The grants of docs/least-privilege.md, and a gateway with nothing else. */

const ROLE = 'portico_least';
const SCHEMA = 'portico_least_vector';
const PASSWORD = 'a-password-of-the-least-0123456789';
const ADMIN = 'test-vector-administrator-0123456789';

jest.setTimeout(120_000);

/** @param user of the backend, instead of the tests' own */
function addressOf(variable: Parameters<typeof backendAddress>[0], user: string): string {
  const url = new URL(backendAddress(variable));
  url.username = user;
  url.password = PASSWORD;
  return String(url);
}

/** The superuser of this run's Postgres: the tests' own role may make no others. */
async function withSuperuser<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const secrets = readFileSync('.portico/test/secrets.env', 'utf8');
  const url = new URL(backendAddress('PORTICO_DATABASE_URL'));
  url.username = 'postgres';
  url.password = /^PORTICO_POSTGRES_ADMIN_PASSWORD=(.*)$/m.exec(secrets)?.[1] ?? '';
  const client = new pg.Client({ connectionString: String(url) });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

describe('Postgres: a role that owns one schema', () => {
  const dropAll = () =>
    withSuperuser(async (client) => {
      await client.query(`drop schema if exists ${SCHEMA} cascade`);
      const { rowCount } = await client.query('select from pg_roles where rolname = $1', [ROLE]);
      if (rowCount === 0) return;
      await client.query(`drop owned by ${ROLE}`);
      await client.query(`drop role ${ROLE}`);
    });

  beforeAll(async () => {
    await dropAll();
    await withSuperuser(async (client) => {
      await client.query('create extension if not exists vector');
      await client.query(
        `create role ${ROLE} login nosuperuser nocreatedb nocreaterole password ${pg.escapeLiteral(PASSWORD)}`,
      );
      await client.query(`create schema ${SCHEMA} authorization ${ROLE}`);
    });
  });
  afterAll(() => dropAll());

  it('stores, searches, builds graphs with progress, makes and drops indexes; and reaches nothing else', async () => {
    const gateway = await startGateway(
      {
        vector: {
          database: { schema: SCHEMA },
          indexes: [{ dimension: 16, token: TOKENS.vector }],
          adminToken: ADMIN,
        },
      },
      { PORTICO_DATABASE_URL: addressOf('PORTICO_DATABASE_URL', ROLE) },
    );
    const index = vectorCaller(`${gateway.url}/vector`);
    const vector = () => Array.from({ length: 16 }, Math.random);
    for (let i = 0; i < 3_000; i += 1_000)
      expect(
        (
          await index(
            '/upsert',
            Array.from({ length: 1_000 }, (_, k) => ({ id: `${i + k}`, vector: vector(), metadata: { k } })),
          )
        ).result,
      ).toBe('Success');
    await eventually(async () => {
      const { result } = await index('/info?explain');
      expect(result).toMatchObject({ namespaces: { '': { vectorCount: 3_000, graph: 'ready' } } });
    }, 60_000);
    expect((await index('/query', { vector: vector(), topK: 5, filter: 'k > 10' })).result).toHaveLength(5);
    expect((await index('/delete', { filter: 'k < 10' })).result).toEqual({ deleted: 30 });
    expect((await index('/reset', [])).result).toBe('Success');
    const indexes = vectorCaller(`${gateway.url}/vector/indexes`);
    expect((await indexes('', { name: 'more', dimension: 2 }, { token: ADMIN })).status).toBe(200);
    expect((await indexes('/more', undefined, { token: ADMIN, method: 'DELETE' })).result).toBe('Success');
    await gateway.stop();
    await withSuperuser(async (client) => {
      const { rows } = await client.query<{ elsewhere: number; super: boolean }>(
        `select (select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace
           where c.relowner = '${ROLE}'::regrole and n.nspname not in ($1, 'pg_toast'))::int as elsewhere,
         (select rolsuper from pg_roles where rolname = '${ROLE}') as super`,
        [SCHEMA],
      );
      expect(rows).toEqual([{ elsewhere: 0, super: false }]);
    });
  });

  it('says what to do where the extension or the schema is missing and the role may not make it', async () => {
    await withSuperuser(async (client) => {
      await client.query('drop database if exists portico_least_empty');
      await client.query('create database portico_least_empty');
    });
    const address = new URL(addressOf('PORTICO_DATABASE_URL', ROLE));
    address.pathname = '/portico_least_empty';
    const metricsToken = TOKENS.metrics;
    const gateway = await startGateway(
      {
        http: { metricsToken },
        vector: { database: { schema: SCHEMA }, indexes: [{ dimension: 16, token: TOKENS.vector }] },
      },
      { PORTICO_DATABASE_URL: String(address) },
    );
    expect((await vectorCaller(`${gateway.url}/vector`)('/info')).status).toBe(503);
    const ready = await fetch(`${gateway.url}/readyz`, {
      headers: { authorization: `Bearer ${metricsToken}` },
    });
    expect(await ready.text()).toContain(`CREATE SCHEMA ${SCHEMA} AUTHORIZATION`);
    await gateway.stop();
    await withSuperuser((client) => client.query('drop database portico_least_empty with (force)'));
  });
});

describe('Redis: a user with a prefix', () => {
  const owner = () => startGateway({ kv: { databases: [{ token: TOKENS.kv }] } });

  it('serves its keys and no others', async () => {
    const first = await owner();
    const { run } = kvCaller(`${first.url}/kv`);
    const rules = `on >${PASSWORD} ~least:* &least:* +@all -@admin -@dangerous +info +keys`;
    expect((await run('ACL', 'SETUSER', ROLE, 'reset', ...rules.split(' '))).body).toEqual({ result: 'OK' });
    const least = await startGateway(
      { kv: { databases: [{ token: TOKENS.kv }] } },
      { PORTICO_REDIS_URL: addressOf('PORTICO_REDIS_URL', ROLE) },
    );
    const own = kvCaller(`${least.url}/kv`);
    expect((await own.run('SET', 'least:a', '1')).body).toEqual({ result: 'OK' });
    expect((await own.pipeline(['INCR', 'least:a'], ['EXPIRE', 'least:a', 60])).body).toEqual([
      { result: 2 },
      { result: 1 },
    ]);
    expect((await own.transaction(['GET', 'least:a'], ['DEL', 'least:a'])).body).toEqual([
      { result: '2' },
      { result: 1 },
    ]);
    expect((await own.run('EVAL', "return redis.call('SET', KEYS[1], 'x')", 1, 'least:b')).body).toEqual({
      result: 'OK',
    });
    expect((await own.run('SET', 'others', '1')).text).toContain('NOPERM');
    expect((await own.run('FLUSHALL')).text).toContain('NOPERM');
    await least.stop();
    await run('DEL', 'least:b');
    await run('ACL', 'DELUSER', ROLE);
    await first.stop();
  });
});
