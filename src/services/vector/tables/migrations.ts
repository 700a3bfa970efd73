import { HttpError } from '../../../http/errors.js';
import { keptCallsTable } from '../../../lib/kept-calls/postgres-kept-calls.js';
import {
  classifyDatabaseError,
  type Migration,
  type Queryable,
  quoteIdentifier,
} from '../../../lib/postgres/postgres.js';
import { comparison, type SimilarityFunction, type Storage } from '../score.js';
import { repeatedVectorsTexts } from './repeated-vectors.js';

/**
 * Tables of the whole schema. One row of `indexes` an index; one of `namespaces` a namespace, with the number that its
 * next new record gets and the count of its records. Whoever adds or removes records locks that row first.
 */
export function migrations(schema: string): Migration[] {
  const s = quoteIdentifier(schema);
  return [
    {
      id: 1,
      name: 'indexes and namespaces',
      tables: ['indexes', 'namespaces'],
      up: async (connection) => {
        await ensureExtension(connection);
        await connection.query(`create table ${s}.indexes (
          id int generated always as identity primary key,
          name text collate "C" not null unique,
          dimension int not null,
          similarity text not null,
          created_at timestamptz not null default now())`);
        // room in each page, so that the counters' updates stay in it and touch no index
        await connection.query(`create table ${s}.namespaces (
          id int generated always as identity primary key,
          index_id int not null references ${s}.indexes (id),
          name text collate "C" not null,
          next_row bigint not null default 0,
          record_count bigint not null default 0,
          unique (index_id, name)) with (fillfactor = 50)`);
      },
    },
    {
      id: 2,
      name: 'kinds of indexes, an HNSW index a namespace, resumable queries',
      tables: ['resumable_queries'],
      up: async (connection) => {
        await connection.query(`alter table ${s}.indexes
          add column type text not null default 'DENSE',
          add column storage text not null default 'vector',
          alter column dimension drop not null,
          alter column similarity drop not null`);
        await connection.query(`alter table ${s}.namespaces add column hnsw boolean not null default false`);
        await connection.query(`create table ${s}.resumable_queries (
          uuid uuid primary key default gen_random_uuid(),
          index_id int not null references ${s}.indexes (id),
          namespace_id int,
          query jsonb not null,
          seen bigint[] not null,
          max_idle interval not null,
          expires_at timestamptz not null)`);
        await connection.query(`create index on ${s}.resumable_queries (index_id, expires_at)`);
        await connection.query(`create index on ${s}.resumable_queries (namespace_id)`);
        const indexes = await connection.query<{ id: number }>(`select id from ${s}.indexes`);
        for (const { id } of indexes.rows) await connection.query(metadataIndexText(`${s}.records_${id}`));
      },
    },
    {
      id: 3,
      name: 'whose a resumable query is',
      tables: [],
      up: async (connection) => {
        await connection.query(`alter table ${s}.resumable_queries add column token text`);
      },
    },
    {
      id: 4,
      name: 'namespaces whose records are still to be deleted',
      tables: ['dropped_namespaces'],
      up: async (connection) => {
        await connection.query(`create table ${s}.dropped_namespaces (
          id int primary key,
          index_id int not null references ${s}.indexes (id))`);
      },
    },
    {
      id: 5,
      name: 'vectors that many records have',
      tables: [],
      up: async (connection) => {
        await connection.query(
          `alter table ${s}.namespaces add column repeats boolean not null default false`,
        );
        const indexes = await connection.query<DenseIndexRow>(
          `select id, dimension, similarity, storage from ${s}.indexes where dimension is not null`,
        );
        for (const { id, dimension, similarity, storage } of indexes.rows) {
          const records = `${s}.records_${id}`;
          await connection.query(
            `alter table ${records} add column is_repeated boolean not null default false`,
          );
          const tables = { records, repeated: `${s}.repeated_${id}` };
          const dense = comparison(similarity, dimension, storage);
          for (const text of repeatedVectorsTexts(tables, dense)) await connection.query(text);
        }
      },
    },
    {
      id: 6,
      name: 'calls with a key',
      tables: ['kept_calls'],
      up: async (connection) => {
        await connection.query(keptCallsTable(`${s}.kept_calls`));
        await connection.query(`create index on ${s}.kept_calls (expires_at)`);
      },
    },
    {
      id: 7,
      name: 'indexes that an administrator has made',
      tables: [],
      up: async (connection) => {
        await connection.query(`alter table ${s}.indexes
          add column settings jsonb,
          add column token_salt text,
          add column dropped_at timestamptz`);
      },
    },
    {
      id: 8,
      name: 'namespaces whose graph is built later',
      tables: [],
      up: async (connection) => {
        await connection.query(
          `alter table ${s}.namespaces add column graph_deferred boolean not null default false`,
        );
      },
    },
  ];
}

interface DenseIndexRow {
  readonly id: number;
  readonly dimension: number;
  readonly similarity: SimilarityFunction;
  readonly storage: Storage;
}

/** Serves the filters that compare with `=`, IN and CONTAINS. */
export function metadataIndexText(records: string): string {
  return `create index on ${records} using gin (metadata jsonb_path_ops)`;
}

async function ensureExtension(connection: Queryable): Promise<void> {
  const present = await connection.query("select 1 from pg_extension where extname = 'vector'");
  if (present.rowCount > 0) return;
  try {
    await connection.query('create extension vector');
  } catch (cause) {
    const { kind, sqlState } = classifyDatabaseError(cause);
    if (kind !== 'statement') throw cause;
    const reason =
      sqlState === '42501'
        ? 'the database has no extension "vector" and this role may not create it: run CREATE EXTENSION vector as a superuser'
        : `the server has no usable pgvector (${sqlState}): install it, then run CREATE EXTENSION vector`;
    throw new HttpError('backend_unavailable', reason, { cause });
  }
}
