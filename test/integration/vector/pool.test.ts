import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Lifecycle } from '../../../src/lib/lifecycle.js';
import { createLogger } from '../../../src/lib/logger.js';
import { classifyDatabaseError, type Database, openDatabase } from '../../../src/lib/postgres/postgres.js';
import { backend } from '../../support/backend.js';
import { backendAddress } from '../../support/environment.js';
import { PROMPT_MS } from '../../support/eventually.js';

const log = createLogger('silent');

async function withDatabase(
  url: string,
  limits: { poolSize: number; connectTimeoutMs: number; statementTimeoutMs: number },
  work: (database: Database) => Promise<void>,
): Promise<void> {
  const lifecycle = new Lifecycle(log);
  const database = openDatabase({ url, ...limits, applicationName: 'portico test', log, lifecycle });
  try {
    await work(database);
  } finally {
    await lifecycle.stop();
  }
}

const kindOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => 'done',
    (error: unknown) => classifyDatabaseError(error).kind,
  );

test('an address that takes connections and never answers: all who wait are told after one time-out', async () => {
  const sockets = new Set<Socket>();
  const silent = createServer((socket) => sockets.add(socket)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const limits = { poolSize: 2, connectTimeoutMs: 1_000, statementTimeoutMs: 20_000 };
  await withDatabase(`postgres://user:password@127.0.0.1:${port}/x`, limits, async (database) => {
    const startedAt = performance.now();
    const kinds = await Promise.all(Array.from({ length: 40 }, () => kindOf(database.query('select 1'))));
    expect(kinds).toEqual(kinds.map(() => 'unavailable'));
    expect(performance.now() - startedAt).toBeLessThan(PROMPT_MS);
  });
  for (const socket of sockets) socket.destroy();
  silent.close();
});

test('a server that stalls inside a transaction is waited for once, not again for the rollback', async () => {
  const postgres = backend('postgres');
  const limits = { poolSize: 1, connectTimeoutMs: 6_000, statementTimeoutMs: 6_000 };
  await withDatabase(backendAddress('PORTICO_DATABASE_URL'), limits, async (database) => {
    let stalledAt = 0;
    const kind = await kindOf(
      database.transaction(async (connection) => {
        await connection.query('select 1');
        await postgres.pause();
        stalledAt = performance.now();
        await connection.query('select 2');
      }),
    );
    const took = performance.now() - stalledAt;
    await postgres.resume();
    expect(kind).toBe('timeout');
    expect(took).toBeLessThan(12_000);
    expect((await database.query('select 3 as n')).rows).toEqual([{ n: 3 }]);
  });
});

test('a refused statement keeps its connection; a transaction that throws leaves nothing', async () => {
  const limits = { poolSize: 1, connectTimeoutMs: 1_000, statementTimeoutMs: 5_000 };
  await withDatabase(backendAddress('PORTICO_DATABASE_URL'), limits, async (database) => {
    const session = async () => (await database.query('select pg_backend_pid() as pid')).rows;
    const before = await session();
    expect(await kindOf(database.query('select 1 / 0'))).toBe('statement');
    const failing = database.transaction(async (connection) => {
      await connection.query('create table public.test_vector_pool ()');
      throw new Error('changed my mind');
    });
    await expect(failing).rejects.toThrow('changed my mind');
    expect((await database.query("select to_regclass('public.test_vector_pool') as found")).rows).toEqual([
      { found: null },
    ]);
    expect(await session()).toEqual(before);
  });
});

test('a statement that writes or reads much has longer than others, one after it has not', async () => {
  const limits = { poolSize: 1, connectTimeoutMs: 5_000, statementTimeoutMs: 1_000 };
  await withDatabase(backendAddress('PORTICO_DATABASE_URL'), limits, async (database) => {
    const slow = 'select pg_sleep(1.5)';
    const much = 20 * 1024 * 1024;
    expect(await kindOf(database.query(slow))).toBe('timeout');
    expect(await kindOf(database.query(slow, [], undefined, much))).toBe('done');
    expect(await kindOf(database.query(`${slow}, length($1)`, ['x'.repeat(much)]))).toBe('done');
    expect(await kindOf(database.query(slow))).toBe('timeout');
  });
});
