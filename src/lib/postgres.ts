import pg from 'pg';
import type { ReleaseRegistry } from './lifecycle.js';
import type { Logger } from './logger.js';

export interface DatabaseOptions {
  /** `postgres://user:password@host:port/database` */
  url: string;
  /** Most connections held at once. */
  poolSize: number;
  /** How long a statement may run, in ms: Postgres itself ends it. */
  statementTimeoutMs: number;
  /** How long a caller waits for a connection, in ms. */
  connectTimeoutMs: number;
  applicationName: string;
  /** Run-time settings of every connection, such as `{ 'hnsw.ef_search': '80' }`. */
  settings?: Readonly<Record<string, string>>;
  log: Logger;
  lifecycle: ReleaseRegistry;
}

export interface QueryResult<Row> {
  rows: Row[];
  rowCount: number;
}

/** Something that runs statements: the pool, or the one connection of a transaction. */
export interface Queryable {
  /**
   * @param values `$1...`; a Buffer goes out in Postgres' binary format
   * @param name prepares the statement under this name, once a connection
   */
  query<Row = Record<string, unknown>>(
    sql: string,
    values?: readonly unknown[],
    name?: string,
  ): Promise<QueryResult<Row>>;
}

export interface Database extends Queryable {
  /** Runs `work` between BEGIN and COMMIT on one connection; an error rolls all of it back. */
  transaction<T>(work: (connection: Queryable) => Promise<T>): Promise<T>;
  /** Resolves when Postgres answers. */
  check(): Promise<void>;
}

/**
 * What kind of failure a thrown error is, for a service's translation into its own reply:
 * `unavailable` nothing was executed or the outcome is unknown because the connection is gone; `timeout` Postgres or the pool ended the
 * wait; `statement` Postgres refused the statement, `sqlState` says why; `other` not Postgres' at all.
 */
export function classifyDatabaseError(error: unknown): {
  kind: 'unavailable' | 'timeout' | 'statement' | 'other';
  sqlState: string | undefined;
} {
  if (!(error instanceof Error)) return { kind: 'other', sqlState: undefined };
  const code = (error as { code?: unknown }).code;
  const sqlState = typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
  if (sqlState === '57014') return { kind: 'timeout', sqlState };
  // 08 connection, 57P admin shutdown and crash, 53 out of connections, memory or disk
  if (sqlState !== undefined && /^(08|57P|53)/.test(sqlState)) return { kind: 'unavailable', sqlState };
  if (sqlState !== undefined) return { kind: 'statement', sqlState };
  if (typeof code === 'string' && NETWORK_CODES.has(code))
    return { kind: 'unavailable', sqlState: undefined };
  if (UNAVAILABLE_TEXT.test(error.message)) return { kind: 'unavailable', sqlState: undefined };
  if (/Query read timeout/.test(error.message)) return { kind: 'timeout', sqlState: undefined };
  return { kind: 'other', sqlState: undefined };
}

const NETWORK_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
]);

// node-postgres throws these without a code
const UNAVAILABLE_TEXT =
  /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end/;

/** A pool on `url`. Connects on first use, so a database that is away fails the query, not the start. */
export function openDatabase(options: DatabaseOptions): Database {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.poolSize,
    application_name: options.applicationName,
    connectionTimeoutMillis: options.connectTimeoutMs,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    statement_timeout: options.statementTimeoutMs,
    // a stalled server (paused, cut off) never sends the statement timeout's error: the client gives up a little later
    query_timeout: options.statementTimeoutMs + 500,
    ...(options.settings === undefined ? {} : { options: runTimeSettings(options.settings) }),
  });
  // an idle connection that dies reports here; without a listener it would end the process
  pool.on('error', (err) => options.log.warn({ err }, 'postgres: an idle connection was lost'));
  options.lifecycle.onStop('postgres pool', () => pool.end());

  return {
    query: (sql, values, name) => run(pool, sql, values, name),
    transaction: (work) => inTransaction(pool, work),
    check: async () => {
      await pool.query('select 1');
    },
  };
}

function runTimeSettings(settings: Readonly<Record<string, string>>): string {
  return Object.entries(settings)
    .map(([key, value]) => `-c ${key}=${value.replace(/[\\ ]/g, '\\$&')}`)
    .join(' ');
}

async function run<Row>(
  target: pg.Pool | pg.PoolClient,
  text: string,
  values: readonly unknown[] | undefined,
  name: string | undefined,
): Promise<QueryResult<Row>> {
  const result = await target.query({
    text,
    ...(values === undefined ? {} : { values: values as unknown[] }),
    ...(name === undefined ? {} : { name }),
  });
  return { rows: result.rows as Row[], rowCount: result.rowCount ?? 0 };
}

async function inTransaction<T>(pool: pg.Pool, work: (connection: Queryable) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  // a connection lost between two statements reports here and would otherwise end the process
  const onError = (error: Error) => {
    broken = error;
  };
  client.on('error', onError);
  try {
    await client.query('begin');
    const result = await work({ query: (sql, values, name) => run(client, sql, values, name) });
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch((rollbackError: Error) => {
      broken ??= rollbackError;
    });
    throw error;
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}

export interface Migration {
  /** 1, 2, 3 ... without gaps. */
  id: number;
  name: string;
  /** Statements that bring the schema from the one before to this one; run inside the one transaction. */
  up: (connection: Queryable) => Promise<void>;
}

/**
 * Brings Postgres schema `schema` to the newest version: creates it and its table `migrations` when missing and runs
 * what has not run yet, in order, all in one transaction under an advisory lock, so several gateways may start at once.
 * @throws when the database is newer than this program knows
 */
export async function migrate(
  database: Database,
  schema: string,
  migrations: readonly Migration[],
): Promise<void> {
  const quoted = quoteIdentifier(schema);
  await database.transaction(async (connection) => {
    await connection.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`portico ${schema}`]);
    const existing = await connection.query('select 1 from pg_namespace where nspname = $1', [schema]);
    if (existing.rowCount === 0) await connection.query(`create schema ${quoted}`);
    await connection.query(
      `create table if not exists ${quoted}.migrations (id int primary key, name text not null, at timestamptz not null default now())`,
    );
    const done = await connection.query<{ id: number }>(`select id from ${quoted}.migrations order by id`);
    const newest = done.rows.at(-1)?.id ?? 0;
    const known = migrations.at(-1)?.id ?? 0;
    if (newest > known) {
      throw new Error(`schema ${schema} is at version ${newest}; this program knows only up to ${known}`);
    }
    for (const migration of migrations) {
      if (migration.id <= newest) continue;
      await migration.up(connection);
      await connection.query(`insert into ${quoted}.migrations (id, name) values ($1, $2)`, [
        migration.id,
        migration.name,
      ]);
    }
  });
}

/** An identifier as it may stand in SQL text, whatever characters it holds. */
export function quoteIdentifier(name: string): string {
  return pg.escapeIdentifier(name);
}
