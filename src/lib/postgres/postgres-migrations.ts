import type { Database, Queryable } from './postgres-database.js';
import { classifyDatabaseError } from './postgres-errors.js';

export interface Migration {
  /** 1, 2, 3 ... without gaps. */
  id: number;
  name: string;
  /** Those that it makes and a later one still needs. */
  tables: readonly string[];
  /** Statements that bring the schema from the one before to this one; run inside the one transaction. */
  up: (connection: Queryable) => Promise<void>;
}

/** What is in the database cannot be worked with; the message says why, and what to do. */
export class UnusableSchema extends Error {
  override readonly name = 'UnusableSchema';
}

/**
 * Holds back every other gateway that wants to change `schema`, until the transaction of `connection` ends.
 */
export async function lockSchema(connection: Queryable, schema: string): Promise<void> {
  await connection.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`portico ${schema}`]);
}

/**
 * Brings Postgres schema `schema` to the newest version: creates it and its table `migrations` when missing and runs
 * what has not run yet, in order, all in one transaction under an advisory lock, so several gateways may start at once.
 * @param signal cancels what runs. With it a migration has all the time that it needs, on a connection of its own: an
 *   index over a million rows takes longer than a statement of the pool may
 * @throws UnusableSchema when the database is newer than this program knows, or a table is gone that an earlier version has made
 */
export async function migrate(
  database: Database,
  schema: string,
  migrations: readonly Migration[],
  signal?: AbortSignal,
): Promise<void> {
  const work = (connection: Queryable) => migrateWith(connection, schema, migrations);
  if (signal === undefined) return database.transaction(work);
  await database.aside(async (connection) => {
    // what fails ends the connection, and the transaction with it
    await connection.query('begin');
    await work(connection);
    await connection.query('commit');
  }, signal);
}

async function migrateWith(
  connection: Queryable,
  schema: string,
  migrations: readonly Migration[],
): Promise<void> {
  const quoted = quoteIdentifier(schema);
  await lockSchema(connection, schema);
  const existing = await connection.query('select 1 from pg_namespace where nspname = $1', [schema]);
  if (existing.rowCount === 0) await createSchema(connection, schema);
  await connection.query(
    `create table if not exists ${quoted}.migrations (id int primary key, name text not null, at timestamptz not null default now())`,
  );
  const done = await connection.query<{ id: number }>(`select id from ${quoted}.migrations order by id`);
  const newest = done.rows.at(-1)?.id ?? 0;
  const known = migrations.at(-1)?.id ?? 0;
  if (newest > known) {
    throw new UnusableSchema(
      `schema ${schema} is at version ${newest}; this program knows only up to ${known}`,
    );
  }
  for (const migration of migrations) {
    if (migration.id <= newest) continue;
    await migration.up(connection);
    await connection.query(`insert into ${quoted}.migrations (id, name) values ($1, $2)`, [
      migration.id,
      migration.name,
    ]);
  }
  await demandTables(
    connection,
    schema,
    migrations.flatMap(({ tables }) => tables),
  );
}

/** Postgres' insufficient_privilege. */
const NOT_ALLOWED = '42501';

/** @throws UnusableSchema where this role may not */
async function createSchema(connection: Queryable, schema: string): Promise<void> {
  try {
    await connection.query(`create schema ${quoteIdentifier(schema)}`);
  } catch (error) {
    if (classifyDatabaseError(error).sqlState !== NOT_ALLOWED) throw error;
    throw new UnusableSchema(
      `the database has no schema ${schema} and this role may not create it: run CREATE SCHEMA ${schema} AUTHORIZATION for its role as a superuser`,
    );
  }
}

/** What else is in the schema is somebody's data: a table that is gone is not made anew beside it. */
async function demandTables(connection: Queryable, schema: string, tables: readonly string[]): Promise<void> {
  const names = tables.map((name) => `${quoteIdentifier(schema)}.${quoteIdentifier(name)}`);
  const { rows } = await connection.query<{ name: string }>(
    'select name from unnest($1::text[]) name where to_regclass(name) is null',
    [names],
  );
  if (rows.length > 0)
    throw new UnusableSchema(
      `${rows.map(({ name }) => name).join(', ')} is missing: restore it, or drop the schema, and all of it is made again`,
    );
}

/** An identifier as it may stand in SQL text, whatever characters it holds. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
