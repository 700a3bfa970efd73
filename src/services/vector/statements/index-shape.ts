import type { Comparison } from '../score.js';

/** The tables of one index, quoted. */
export interface TableNames {
  readonly records: string;
  /** Of a sparse or hybrid index: a row for each index of each record. */
  readonly postings: string;
  /** Of a dense or hybrid index: vectors that many records have, a row for each. */
  readonly repeated: string;
  /** Of every index of the schema. */
  readonly namespaces: string;
  readonly resumableQueries: string;
  /** Ids of namespaces that are gone and whose records are not yet. */
  readonly droppedNamespaces: string;
}

/** What statements need to know of an index. */
export interface IndexShape extends TableNames {
  readonly indexId: number;
  /** `undefined` where records have no dense part. */
  readonly dense: Comparison | undefined;
  readonly sparse: boolean;
}

/** SQL, with the name under which every connection prepares it once. */
export interface Statement {
  readonly text: string;
  readonly name?: string;
}

/** Prepared statements stay on their connections for ever; what comes after so many is not prepared. */
const MAX_PREPARED = 500;

/** Builds each statement of an index once. */
export class StatementCache {
  private readonly known = new Map<string, Statement>();

  constructor(private readonly indexId: number) {}

  /** @param key tells this text from every other of the index */
  get(key: string, build: () => string): Statement {
    const found = this.known.get(key);
    if (found !== undefined) return found;
    if (this.known.size >= MAX_PREPARED) return { text: build() };
    const statement = { name: `vector ${this.indexId} ${key}`, text: build() };
    this.known.set(key, statement);
    return statement;
  }
}

/** What of a record a reply carries beside its id. */
export interface Included {
  readonly vectors: boolean;
  readonly metadata: boolean;
  readonly data: boolean;
}

export const NOTHING_INCLUDED: Included = { vectors: false, metadata: false, data: false };

export function includedBy(flags: {
  readonly includeVectors: boolean;
  readonly includeMetadata: boolean;
  readonly includeData: boolean;
}): Included {
  return { vectors: flags.includeVectors, metadata: flags.includeMetadata, data: flags.includeData };
}

/** Short text that differs where the selected columns do. */
export function includedKey({ vectors, metadata, data }: Included): string {
  return `${Number(vectors)}${Number(metadata)}${Number(data)}`;
}

/** A selected record. Vector, sparse parts and metadata are JSON as Postgres prints it. */
export interface RecordRow {
  readonly id: string;
  readonly row: string;
  readonly vector?: string;
  readonly sparse_indices?: string;
  readonly sparse_values?: string;
  readonly metadata?: string | null;
  readonly data?: string | null;
}

/** Columns of table `from` as they are stored, for a subquery whose rows are not yet chosen. */
export function rawColumns(shape: IndexShape, included: Included): string[] {
  return [
    'id',
    'row',
    ...(included.vectors && shape.dense !== undefined ? ['vec'] : []),
    ...(included.vectors && shape.sparse ? ['sparse_indices', 'sparse_values'] : []),
    ...(included.metadata ? ['has_metadata', 'metadata'] : []),
    ...(included.data ? ['data'] : []),
  ];
}

/** The same columns as JSON text, which is spliced into the reply unparsed; floats are in their shortest form. */
export function recordColumns(shape: IndexShape, included: Included, from: string): string {
  return [
    `${from}.id`,
    `${from}.row`,
    ...(included.vectors && shape.dense !== undefined ? [`${from}.vec::text as vector`] : []),
    ...(included.vectors && shape.sparse
      ? [
          `array_to_json(${from}.sparse_indices)::text as sparse_indices`,
          `array_to_json(${from}.sparse_values)::text as sparse_values`,
        ]
      : []),
    ...(included.metadata
      ? [`case when ${from}.has_metadata then ${from}.metadata::text end as metadata`]
      : []),
    ...(included.data ? [`${from}.data`] : []),
  ].join(', ');
}

/** Records that a search leaves out: those that a resumable query has given, which stay in Postgres however many they are. */
export interface LeftOut {
  /** Of the resumable query. */
  readonly uuid: string;
  readonly count: number;
}

/** Condition on column `row`. By a hashed set: one look for each record. */
export function notSeen(
  { resumableQueries }: IndexShape,
  row: string,
  { uuid }: LeftOut,
  parameters: Parameters,
): string {
  return `${row} not in (select unnest(seen) from ${resumableQueries} where uuid = ${parameters.add(uuid, 'uuid')})`;
}

/** Collects the parameters of a statement whose parts vary. */
export class Parameters {
  readonly values: unknown[] = [];

  /** @returns `$n::type` */
  add(value: unknown, type: string): string {
    this.values.push(value);
    return `$${this.values.length}::${type}`;
  }
}

/** CTE `space`: the namespace named by the parameter `name`, or no row. */
export function spaceCte({ namespaces, indexId }: IndexShape, name: string): string {
  return `space as materialized (
  select id, next_row, record_count, hnsw, repeats from ${namespaces} where index_id = ${indexId} and name = ${name}
)`;
}
