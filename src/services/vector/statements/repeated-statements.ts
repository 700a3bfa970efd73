import type { Comparison } from '../score.js';
import type { IndexShape } from './index-shape.js';

/**
 * A vector of so many records is kept out of the graph by all that come after them. HNSW links a vector to its nearest, so many
 * equal ones are linked to each other only, and a search that meets them does not get away (pgvector keeps ten in one place, and
 * looks at 64 places for links: 640 equal ones are an island).
 */
const EQUAL_IN_GRAPH = 100;

/** CTEs `judged`: `incoming`, and whether the vector is kept out of the graph; `newly`: vectors that are from now on. */
export function repeatedCtes({ records, repeated }: IndexShape, { stored, digest }: Comparison): string {
  return `, digested as materialized (
  select *, ${digest(stored('vec'))} as digest from incoming
), judged as materialized (
  select d.*, ${isRepeated(records, repeated, digest, 'd.digest', 'row_number() over (partition by d.digest order by d.place)')} as is_repeated
  from digested d
), newly as (
  insert into ${repeated} (namespace_id, digest, vec)
  select distinct on (digest) $1::int, digest, ${stored('vec')} from judged where is_repeated
  on conflict do nothing returning 1
)`;
}

/** Whether a vector that comes as the `nth` of its digest in this statement is kept out of the graph. */
function isRepeated(
  records: string,
  repeated: string,
  digest: Comparison['digest'],
  value: string,
  nth: string,
): string {
  return `(exists (select from ${repeated} known where known.namespace_id = $1::int and known.digest = ${value})
    or ${nth} + (select count(*) from (select from ${records} r where r.namespace_id = (select $1::int)
      and ${digest('r.vec')} = ${value} limit ${EQUAL_IN_GRAPH}) equal) > ${EQUAL_IN_GRAPH})`;
}

/** $1 namespace id: a row for each vector of the graph that too many records have. */
export function anyManyEqualText({ records }: IndexShape, { digest }: Comparison): string {
  return `select ${digest('vec')} as digest from ${records} where namespace_id = $1::int and not is_repeated
  group by 1 having count(*) > ${EQUAL_IN_GRAPH}`;
}

/** $1 namespace id. All of their records leave the graph. */
export function leaveOutText(shape: IndexShape, dense: Comparison): string {
  const { records, repeated, namespaces } = shape;
  return `with many as materialized (
  ${anyManyEqualText(shape, dense)}
), known as (
  insert into ${repeated} (namespace_id, digest, vec)
  select $1::int, many.digest, one.vec from many cross join lateral (
    select vec from ${records} r where namespace_id = $1::int and ${dense.digest('r.vec')} = many.digest limit 1) one
  on conflict do nothing
), marked as (
  update ${records} r set is_repeated = true
  where namespace_id = $1::int and ${dense.digest('r.vec')} in (select digest from many)
)
update ${namespaces} set repeats = true where id = $1::int`;
}
