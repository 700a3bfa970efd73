import { type Included, type IndexShape, type Parameters, recordColumns, spaceCte } from './index-shape.js';

/**
 * Condition on column `id` (collated as "C", so in order of code points) for all texts that begin with `prefix`. A range,
 * because Postgres serves `^@` from an index only while it plans with the very text.
 */
export function prefixCondition(parameters: Parameters, prefix: string): string {
  const from = `id >= ${parameters.add(prefix, 'text')}`;
  const end = after(prefix);
  return end === undefined ? from : `${from} and id < ${parameters.add(end, 'text')}`;
}

/** The least text that is greater than all that begin with `prefix`; there is none above U+10FFFF. */
function after(prefix: string): string | undefined {
  const points = [...prefix].map((char) => char.codePointAt(0) as number);
  while (points.at(-1) === 0x10ffff) points.pop();
  const last = points.pop();
  if (last === undefined) return undefined;
  // surrogates are no characters
  return String.fromCodePoint(...points, last + 1 === 0xd800 ? 0xe000 : last + 1);
}

/** $1 namespace, $2 ids */
export function fetchText(shape: IndexShape, included: Included): string {
  return `with ${spaceCte(shape, '$1::text')}
select ${recordColumns(shape, included, 'r')} from ${shape.records} r
where r.namespace_id = (select id from space) and r.id = any($2::text[])`;
}

/** $1 namespace, $2 first row, $3 limit */
export function rangeText(shape: IndexShape, included: Included, condition?: string): string {
  return `with ${spaceCte(shape, '$1::text')}
select ${recordColumns(shape, included, 'r')} from ${shape.records} r
where r.namespace_id = (select id from space) and r.row >= $2::bigint${condition === undefined ? '' : ` and ${condition}`}
order by r.row limit $3::int`;
}

/** $1 namespace */
export function countText({ records, ...shape }: IndexShape, condition: string): string {
  return `with ${spaceCte({ records, ...shape }, '$1::text')}
select count(*) as count from ${records} where namespace_id = (select id from space) and ${condition}`;
}

/**
 * $1 namespace, $2 path, $3 limit. Values of a field, elements of an array each, by how many records have them. A record counts
 * once for a value.
 */
export function facetsText({ records, ...shape }: IndexShape, condition: string): string {
  return `with ${spaceCte({ records, ...shape }, '$1::text')}
select one.value::text as value, count(*) as count from ${records} r cross join lateral (
  select distinct value from jsonb_path_query(r.metadata, $2::jsonpath, '{}', true) as value
  where jsonb_typeof(value) in ('string', 'number', 'boolean')) one
where r.namespace_id = (select id from space) and ${condition}
group by one.value order by count(*) desc, one.value limit $3::int`;
}

/** $1 namespace, $2 rows, $3 path. What each has there, where that is a text, a number or a boolean. */
export function groupsText({ records, ...shape }: IndexShape): string {
  return `with ${spaceCte({ records, ...shape }, '$1::text')}
select r.row, one.value::text as value from ${records} r cross join lateral (
  select jsonb_path_query_first(r.metadata, $3::jsonpath, '{}', true) as value) one
where r.namespace_id = (select id from space) and r.row = any($2::bigint[])
  and jsonb_typeof(one.value) in ('string', 'number', 'boolean')`;
}

/** $1 namespace, $2 rows */
export function rowsText(shape: IndexShape, included: Included): string {
  return `with ${spaceCte(shape, '$1::text')}
select ${recordColumns(shape, included, 'r')} from ${shape.records} r
where r.namespace_id = (select id from space) and r.row = any($2::bigint[])`;
}

/**
 * $1 namespace. Guesses rows until one is there, so that every record is as likely as the others; where nearly all rows
 * are gone, the next one after a guess, in a circle.
 */
export function randomText(shape: IndexShape): string {
  const { records, namespaces, indexId } = shape;
  const columns = recordColumns(shape, { vectors: true, metadata: false, data: false }, 'r');
  return `with space as materialized (
  select id, next_row from ${namespaces} where index_id = ${indexId} and name = $1::text and record_count > 0
), guesses as materialized (
  select n, floor(random() * (select next_row from space))::bigint as row from generate_series(1, 40) as n
), hit as materialized (
  select g.n as place, r.row from guesses g
  join ${records} r on r.namespace_id = (select id from space) and r.row = g.row order by g.n limit 1
), near as materialized (
  (select 41 as place, row from ${records} where namespace_id = (select id from space)
    and row >= (select row from guesses where n = 1) and not exists (select from hit) order by row limit 1)
  union all
  (select 42, row from ${records} where namespace_id = (select id from space)
    and not exists (select from hit) order by row limit 1)
)
select ${columns} from ${records} r
where r.namespace_id = (select id from space)
  and r.row = (select row from (select * from hit union all select * from near) chosen order by place limit 1)`;
}

export function countsText({ namespaces, indexId }: IndexShape): string {
  return `select id, name, record_count, hnsw, graph_deferred from ${namespaces} where index_id = ${indexId} order by name`;
}

/** Graphs that are being built by whatever gateway: `id` of the namespace, `done` from 0 to 1 where Postgres can tell. */
export function buildsText({ records }: IndexShape): string {
  return `select substring(c.relname from '_ns(\\d+)_') as id,
    p.blocks_done::float8 / nullif(p.blocks_total, 0) as done
  from pg_stat_progress_create_index p join pg_class c on c.oid = p.index_relid
  where p.relid = to_regclass('${records}')`;
}

export function sizeText({ records, postings, sparse }: IndexShape): string {
  const sizes = [records, ...(sparse ? [postings] : [])].map(
    (table) => `pg_total_relation_size('${table}'::regclass)`,
  );
  return `select ${sizes.join(' + ')} as bytes`;
}
