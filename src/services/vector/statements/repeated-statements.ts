import type { Comparison } from '../score.js';
import type { IndexShape } from './index-shape.js';

/**
 * A vector of so many records is kept out of the graph by all that come after them. HNSW links a vector to its nearest, so many
 * equal ones are linked to each other only, and a search that meets them does not get away. pgvector keeps ten in one place of
 * the graph; of 40 to 100 some places cannot be reached any more (8,000 records in groups of 100: recall@10 of 0.93, of some
 * queries 0). What is outside is compared as a whole: at most a tenth of the records.
 */
const EQUAL_IN_GRAPH = 10;

/**
 * With each vector that is new outside the graph, so many that were there before are forgotten if no record has them any more:
 * those that follow a place found by chance, the first after the last, or the first would stay for long.
 */
const LOOKED_AT = 20;

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
), forgotten as (
  delete from ${repeated} where namespace_id = $1::int and digest in (
    select digest from (
      (select digest from ${repeated} where namespace_id = $1::int and digest > (select gen_random_uuid())
        and (select count(*) from newly) > 0 order by digest limit ${LOOKED_AT})
      union all
      (select digest from ${repeated} where namespace_id = $1::int
        and (select count(*) from newly) > 0 order by digest limit ${LOOKED_AT})
      limit ${LOOKED_AT}) looked
    where not exists (select from ${records} r where r.namespace_id = (select $1::int) and ${digest('r.vec')} = looked.digest)
      and digest not in (select digest from judged))
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
export function manyEqualText({ records }: IndexShape, { digest }: Comparison): string {
  return `select ${digest('vec')}::text as digest from ${records} where namespace_id = $1::int and not is_repeated
  group by ${digest('vec')} having count(*) > ${EQUAL_IN_GRAPH}`;
}

/** Records that leave the graph in one statement: 0.3 s, in which nobody writes. */
export const LEFT_OUT_AT_ONCE = 5_000;

/** $1 namespace id, $2 digests: so many of their records leave the graph. Until all have, a search finds them in either place. */
export function leaveOutText({ records, repeated, namespaces }: IndexShape, { digest }: Comparison): string {
  const recordsOf = (columns: string, more: string, limit: number) => `unnest($2::uuid[]) as d (digest)
    cross join lateral (select ${columns} from ${records} r
      where namespace_id = $1::int and ${digest('r.vec')} = d.digest${more} limit ${limit}) r`;
  return `with known as (
  insert into ${repeated} (namespace_id, digest, vec)
  select $1::int, d.digest, r.vec from ${recordsOf('vec', '', 1)}
  on conflict do nothing
), told as (
  update ${namespaces} set repeats = true where id = $1::int and not repeats
)
update ${records} set is_repeated = true where ctid = any(array(
  select r.ctid from ${recordsOf('ctid', ' and not is_repeated', LEFT_OUT_AT_ONCE)} limit ${LEFT_OUT_AT_ONCE}))`;
}
