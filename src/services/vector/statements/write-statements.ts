import type { Comparison } from '../score.js';
import type { IndexShape } from './index-shape.js';
import { repeatedCtes } from './repeated-statements.js';

/** Parameters of an upsert after `$1` namespace id and `$2` its next row, in this order. */
function incomingColumns({ dense, sparse }: IndexShape): { name: string; type: string }[] {
  return [
    { name: 'id', type: 'text[]' },
    { name: 'metadata', type: 'jsonb[]' },
    { name: 'data', type: 'text[]' },
    ...(dense === undefined ? [] : [{ name: 'vec', type: 'vector[]' }]),
    // as text, because Postgres takes apart arrays of arrays only when all are of one length
    ...(sparse
      ? [
          { name: 'sparse_indices', type: 'text[]' },
          { name: 'sparse_values', type: 'text[]' },
        ]
      : []),
  ];
}

/**
 * A replaced record keeps its row; new ones are numbered from the namespace's next row without gaps, in the order of
 * the request. Counters and records change in one statement, under the lock taken before. Returns `record_count`.
 */
export function upsertText(shape: IndexShape): string {
  const { records, namespaces, dense, sparse } = shape;
  const incoming = incomingColumns(shape);
  const names = incoming.map(({ name }) => name).join(', ');
  const parameters = incoming.map(({ type }, i) => `$${i + 3}::${type}`).join(', ');
  const written = [
    ...(dense === undefined
      ? []
      : [
          { column: 'vec', value: dense.stored('vec') },
          { column: 'is_repeated', value: 'is_repeated' },
        ]),
    { column: 'metadata', value: "coalesce(metadata, '{}')" },
    { column: 'has_metadata', value: 'metadata is not null' },
    { column: 'data', value: 'data' },
    ...(sparse
      ? [
          { column: 'sparse_indices', value: 'sparse_indices::int[]' },
          { column: 'sparse_values', value: 'sparse_values::real[]' },
        ]
      : []),
  ];
  return `with incoming as (
  select u.*, old.row as kept
  from unnest(${parameters}) with ordinality as u (${names}, place)
  left join ${records} old on old.namespace_id = $1::int and old.id = u.id
)${dense === undefined ? '' : repeatedCtes(shape, dense)}, written as (
  insert into ${records} (namespace_id, row, id, ${written.map(({ column }) => column).join(', ')})
  select $1::int,
    coalesce(kept, $2::bigint - 1 + row_number() over (partition by kept is null order by place)),
    id, ${written.map(({ value }) => value).join(', ')}
  from ${dense === undefined ? 'incoming' : 'judged'} order by place
  on conflict (namespace_id, id) do update set
    ${written.map(({ column }) => `${column} = excluded.${column}`).join(', ')}
  returning row >= $2::bigint as is_new
), added as (
  select count(*) filter (where is_new) as n from written
)
update ${namespaces} set next_row = next_row + added.n, record_count = record_count + added.n${dense === undefined ? '' : ', repeats = repeats or (select count(*) from newly) > 0'}
from added where id = $1::int and (added.n > 0${dense === undefined ? '' : ' or (select count(*) from newly) > 0'}) returning record_count`;
}

/**
 * The namespace whose id is $1, hidden from the planner. By statistics that do not know a namespace yet it has one record, and
 * whatever reads all of it looks as cheap as a look-up.
 */
const NAMESPACE = '(select $1::int)';

/**
 * $1 namespace id, $2 ids whose postings go. Every record and posting is looked up by its key; LIMIT keeps Postgres from making
 * joins of it, with which 500 of a new namespace's 2,000 records took 10 s.
 */
export function dropPostingsText({ records, postings }: IndexShape): string {
  return `with old as materialized (
  select r.row, r.sparse_indices from unnest($2::text[]) as u (id)
  cross join lateral (${recordByIdText(records, 'row, sparse_indices')}) r
), ${postingPlaces(postings, 'old')}
delete from ${postings} p using places where p.ctid = places.ctid`;
}

/** CTE `places`: where the postings of `source`'s records (`row`, `sparse_indices`) lie. */
function postingPlaces(postings: string, source: string): string {
  return `places as materialized (
  select distinct p.ctid from ${source} cross join lateral unnest(${source}.sparse_indices) as d (dim)
  cross join lateral (
    select ctid from ${postings} where namespace_id = ${NAMESPACE} and dim = d.dim and row = ${source}.row limit 1
  ) p
)`;
}

function recordByIdText(records: string, columns: string): string {
  return `select ${columns} from ${records} where namespace_id = ${NAMESPACE} and id = u.id limit 1`;
}

/** $1 namespace id, $2 ids, all of which are there, $3 place of each posting's record in $2 (from 1), $4 its index, $5 its value. */
export function addPostingsText({ records, postings }: IndexShape): string {
  return `with stored as materialized (
  select array_agg(r.row order by u.place) as rows from unnest($2::text[]) with ordinality as u (id, place)
  cross join lateral (${recordByIdText(records, 'row')}) r
)
insert into ${postings} (namespace_id, dim, row, value)
select $1::int, p.dim, (select rows from stored)[p.place], p.value
from unnest($3::int[], $4::int[], $5::real[]) as p (place, dim, value)`;
}

/** $1 namespace id, $2 id */
export function metadataText({ records }: IndexShape): string {
  return `select metadata::text as metadata from ${records} where namespace_id = ${NAMESPACE} and id = $2::text`;
}

/**
 * The records that meet `condition`, with their places and their metadata, at most `limit`. $1 namespace id; `condition` may use
 * $2 and more.
 */
export function selectedText({ records }: IndexShape, condition: string, limit: number): string {
  return `select ctid::text as at, metadata::text as metadata from ${records}
where namespace_id = ${NAMESPACE} and ${condition} limit ${limit}`;
}

/**
 * Looks at the next `limit` records from row `from` on, before row `end`, at fewer where those that meet `condition` have more
 * than `bytes` of metadata, each of them `more` beside its own. $1 namespace id. Returns those that meet it, as above, and with each
 * `next`: the row to go on with; one row without a place where none does.
 */
export function selectedWindowText(
  { records }: IndexShape,
  condition: string,
  {
    from,
    end,
    limit,
    bytes,
    more,
  }: {
    readonly from: string;
    readonly end: string;
    readonly limit: number;
    readonly bytes: number;
    readonly more: number;
  },
): string {
  return `with page as materialized (
  select ctid, row, case when ${condition} then metadata::text end as metadata from ${records}
  where namespace_id = ${NAMESPACE} and row >= ${from} and row < ${end} order by row limit ${limit}
), sized as (
  select *, coalesce(octet_length(metadata) + ${more}, 0) as size from page
), summed as (
  select *, sum(size) over (order by row) - size as before from sized
), taken as (select * from summed where before <= ${bytes}),
last as (select max(row) + 1 as next from taken)
select ctid::text as at, metadata, next::text as next
from last left join taken on metadata is not null`;
}

const SET_METADATA = 'set metadata = u.metadata, has_metadata = true';
/** What is as it shall be is not written: each new version of a record costs an entry in every index. */
const DIFFERS = '(r.metadata, r.has_metadata) is distinct from (u.metadata, true)';

/** $1 places, $2 the metadata of each, as one JSON array: of texts the driver would escape each character. */
export function setMetadataText({ records }: IndexShape): string {
  return `update ${records} r ${SET_METADATA}
from rows from (unnest($1::tid[]), jsonb_array_elements($2::jsonb)) as u (at, metadata) where r.ctid = u.at and ${DIFFERS}`;
}

/** $1 places, $2 the metadata of all. */
export function setSameMetadataText({ records }: IndexShape): string {
  return `update ${records} r ${SET_METADATA}
from (select at, $2::jsonb as metadata from unnest($1::tid[]) as at) u where r.ctid = u.at and ${DIFFERS}`;
}

/** What an update may set. */
export type UpdatedPart = 'vector' | 'sparse' | 'metadata' | 'data';

/** $1 namespace id, $2 id, then the values of `parts` in their order, a vector first; a sparse part has two. */
export function updateText(shape: IndexShape, parts: readonly UpdatedPart[]): string {
  const { records, dense } = shape;
  const judged = dense !== undefined && parts.includes('vector') ? dense : undefined;
  let next = judged === undefined ? 3 : 4;
  const sets: Readonly<Record<UpdatedPart, () => string>> = {
    vector: () =>
      judged === undefined ? '' : `vec = ${judged.stored('judged.vec')}, is_repeated = judged.is_repeated`,
    sparse: () => `sparse_indices = $${next++}::int[], sparse_values = $${next++}::real[]`,
    metadata: () => `metadata = $${next++}::jsonb, has_metadata = true`,
    data: () => `data = $${next++}::text`,
  };
  const update = `update ${records} r set ${parts.map((part) => sets[part]()).join(', ')}${judged === undefined ? '' : ' from judged'}
where r.namespace_id = ${NAMESPACE} and r.id = $2::text`;
  return judged === undefined ? update : `${judgedCtes(shape, judged)}\n${update}`;
}

/** The vector $3 of a record that is there goes the way of one that is upserted. */
function judgedCtes(shape: IndexShape, dense: Comparison): string {
  const { records, namespaces } = shape;
  return `with incoming as (
  select $3::vector as vec, 1 as place from ${records} where namespace_id = ${NAMESPACE} and id = $2::text
)${repeatedCtes(shape, dense)}, told as (
  update ${namespaces} set repeats = true where id = $1::int and not repeats and exists (select from newly)
)`;
}

/** Condition for the first `limit` records that meet `condition`, in the order of their ids where `ordered`. $1 namespace id. */
export function firstOf({ records }: IndexShape, condition: string, limit: number, ordered: boolean): string {
  return `ctid = any(array(select ctid from ${records} where namespace_id = ${NAMESPACE} and ${condition}${ordered ? ' order by id' : ''} limit ${limit}))`;
}

/** `condition` may use $2 and more. $1 namespace id. Returns `deleted`, and `last`: the last deleted id. */
export function deleteText(shape: IndexShape, condition: string): string {
  return `with gone as (
  delete from ${shape.records} where namespace_id = ${NAMESPACE} and ${condition} returning id${shape.sparse ? ', row, sparse_indices' : ''}
)${unposted(shape)}
${uncount(shape)}, (select max(id) from gone) as last`;
}

/**
 * Looks at the next `limit` records from row `from` on, before row `end`, and deletes those that meet `condition`. $1 namespace
 * id. Returns `deleted`, and `next`: the row to go on with, null at the end.
 */
export function deleteWindowText(
  shape: IndexShape,
  condition: string,
  { from, end, limit }: { readonly from: string; readonly end: string; readonly limit: number },
): string {
  const { records, sparse } = shape;
  return `with page as materialized (
  select ctid, row, ${condition} as is_meant from ${records}
  where namespace_id = ${NAMESPACE} and row >= ${from} and row < ${end} order by row limit ${limit}
), gone as (
  delete from ${records} where ctid = any(array(select ctid from page where is_meant)) returning row${sparse ? ', sparse_indices' : ''}
)${unposted(shape)}
${uncount(shape)}, (select max(row) + 1 from page) as next`;
}

/** Deletes the postings of `gone`. */
function unposted({ postings, sparse }: IndexShape): string {
  if (!sparse) return '';
  return `, ${postingPlaces(postings, 'gone')}, unposted as (
  delete from ${postings} p using places where p.ctid = places.ctid
)`;
}

/** Takes `gone` off the namespace's count. */
function uncount({ namespaces }: IndexShape): string {
  return `update ${namespaces} set record_count = record_count - counted.n
from (select count(*) as n from gone) counted where id = $1::int returning counted.n as deleted`;
}
