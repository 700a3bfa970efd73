import { HttpError } from '../../../http/errors.js';
import {
  type Database,
  lockSchema,
  type Queryable,
  quoteIdentifier,
} from '../../../lib/postgres/postgres.js';
import { comparison, quantised } from '../score.js';
import type { IndexSettings } from '../settings.js';
import type { IndexShape } from '../statements/index-shape.js';
import { metadataIndexText } from './migrations.js';
import { repeatedVectorsTexts } from './repeated-vectors.js';

/** An index as its database has it. */
export interface IndexTables {
  readonly shape: IndexShape;
  /** oid of the type `vector`, which binary arrays name. */
  readonly vectorType: number;
  /** Of the extension, such as `0.8.4`. */
  readonly pgvectorVersion: string;
}

interface IndexRow {
  id: number;
  type: string;
  dimension: number | null;
  similarity: string | null;
  storage: string;
}

/** A page of Postgres holds 8 kB: up to here a vector fits beside the rest of its row. */
const MAX_PLAIN_BYTES = 6_200;

/**
 * Finds the tables of index `settings.name`, or makes them when the name is new. Changes nothing that exists.
 * @param isManaged an administrator has made it, and may have dropped it: it is not made
 * @throws HttpError with the reason, where what exists does not fit the configuration
 */
export async function ensureIndexTables(
  database: Database,
  schema: string,
  settings: IndexSettings,
  isManaged = false,
): Promise<IndexTables> {
  const s = quoteIdentifier(schema);
  return database.transaction(async (connection) => {
    await lockSchema(connection, schema);
    const extension = await findExtension(connection);
    const found = await connection.query<IndexRow>(
      `select id, type, dimension, similarity, storage from ${s}.indexes where name = $1`,
      [settings.name],
    );
    const row = found.rows[0];
    if (row === undefined && isManaged) throw unusable(`the index ${settings.name} was dropped`);
    const shape = shapeOf(s, row?.id ?? (await insertIndex(connection, s, settings)), settings);
    if (row === undefined) await createTables(connection, shape, settings);
    else await checkIndex(connection, shape, row, settings);
    return { ...extension, shape };
  });
}

/**
 * Makes the tables of a new index inside the transaction of `connection`.
 * @returns its number
 */
export async function makeIndexTables(
  connection: Queryable,
  schema: string,
  settings: IndexSettings,
): Promise<number> {
  const s = quoteIdentifier(schema);
  await findExtension(connection);
  const id = await insertIndex(connection, s, settings);
  await createTables(connection, shapeOf(s, id, settings), settings);
  return id;
}

function shapeOf(
  s: string,
  indexId: number,
  { type, similarity, dimension, storage, hnsw }: IndexSettings,
): IndexShape {
  const exact = comparison(similarity, dimension, storage);
  return {
    indexId,
    records: `${s}.records_${indexId}`,
    postings: `${s}.postings_${indexId}`,
    repeated: `${s}.repeated_${indexId}`,
    namespaces: `${s}.namespaces`,
    resumableQueries: `${s}.resumable_queries`,
    droppedNamespaces: `${s}.dropped_namespaces`,
    dense:
      type === 'SPARSE' ? undefined : hnsw.quantisation === 'binary' ? quantised(exact, dimension) : exact,
    sparse: type !== 'DENSE',
  };
}

async function findExtension(
  connection: Queryable,
): Promise<Pick<IndexTables, 'vectorType' | 'pgvectorVersion'>> {
  const result = await connection.query<{ type: number | null; version: string }>(
    "select to_regtype('vector')::oid as type, extversion as version from pg_extension where extname = 'vector'",
  );
  const row = result.rows[0];
  if (row === undefined) throw unusable('the database has no extension "vector"');
  if (row.type === null) throw unusable('the extension "vector" lies outside the search path of this role');
  const [major = 0, minor = 0] = row.version.split('.').map(Number);
  if (major === 0 && minor < 8)
    throw unusable(`pgvector ${row.version} is too old: 0.8.0 or newer is needed`);
  return { vectorType: row.type, pgvectorVersion: row.version };
}

function unusable(reason: string): HttpError {
  return new HttpError('backend_unavailable', reason);
}

/** What the row of an index says, `null` where it has no dense part. */
function declared({ type, dimension, similarity, storage }: IndexSettings): Omit<IndexRow, 'id'> {
  return type === 'SPARSE'
    ? { type, dimension: null, similarity: null, storage: 'vector' }
    : { type, dimension, similarity, storage };
}

async function insertIndex(connection: Queryable, s: string, settings: IndexSettings): Promise<number> {
  const { type, dimension, similarity, storage } = declared(settings);
  const inserted = await connection.query<{ id: number }>(
    `insert into ${s}.indexes (name, type, dimension, similarity, storage) values ($1, $2, $3, $4, $5) returning id`,
    [settings.name, type, dimension, similarity, storage],
  );
  const { id } = inserted.rows[0] as { id: number };
  await connection.query(`insert into ${s}.namespaces (index_id, name) values ($1, '')`, [id]);
  return id;
}

async function createTables(
  connection: Queryable,
  shape: IndexShape,
  settings: IndexSettings,
): Promise<void> {
  const { records, postings, dense, sparse } = shape;
  const columns = [
    'namespace_id int not null',
    'row bigint not null',
    'id text collate "C" not null',
    ...(dense === undefined
      ? []
      : [`vec ${dense.columnType} not null`, 'is_repeated boolean not null default false']),
    ...(sparse ? ['sparse_indices int[] not null', 'sparse_values real[] not null'] : []),
    // never null, so that a filter's negation can be true on a record without any
    "metadata jsonb not null default '{}'",
    'has_metadata boolean not null',
    'data text',
    'primary key (namespace_id, id)',
    'unique (namespace_id, row)',
  ];
  await connection.query(`create table ${records} (${columns.join(', ')})`);
  // out of the row, vectors are read slowly and their cost is hidden from the planner
  const bytes = settings.dimension * (settings.storage === 'halfvec' ? 2 : 4);
  if (dense !== undefined && bytes <= MAX_PLAIN_BYTES)
    await connection.query(`alter table ${records} alter column vec set storage plain`);
  await connection.query(metadataIndexText(records));
  if (dense !== undefined)
    for (const text of repeatedVectorsTexts(shape, dense)) await connection.query(text);
  if (sparse) {
    await connection.query(`create table ${postings} (
      namespace_id int not null, dim int not null, row bigint not null, value real not null,
      primary key (namespace_id, dim, row) include (value))`);
  }
}

async function checkIndex(
  connection: Queryable,
  { records }: IndexShape,
  existing: IndexRow,
  settings: IndexSettings,
): Promise<void> {
  const table = await connection.query<{ table: string | null }>('select to_regclass($1) as table', [
    records,
  ]);
  if (table.rows[0]?.table === null)
    throw unusable(`the table ${records} of index ${settings.name} is missing`);
  const column = await connection.query<{ type: string }>(
    "select format_type(atttypid, atttypmod) as type from pg_attribute where attrelid = to_regclass($1) and attname = 'vec' and not attisdropped",
    [records],
  );
  // the table itself has the last word on the dimension
  const actual = /\((\d+)\)$/.exec(column.rows[0]?.type ?? '')?.[1];
  const found = { ...existing, dimension: actual === undefined ? null : Number(actual) };
  const wanted = declared(settings);
  const differing = (['type', 'dimension', 'similarity', 'storage'] as const)
    .filter((key) => found[key] !== wanted[key])
    .map((key) => `${key} ${found[key] ?? 'none'}, not ${wanted[key] ?? 'none'}`);
  if (differing.length > 0) {
    throw unusable(
      `the existing index ${settings.name} has ${differing.join(' and ')} as the configuration says; change the configuration, or give the new index another name`,
    );
  }
}
