import { quoteIdentifier } from '../../lib/postgres.js';
/** Up to so many records a namespace is compared as a whole: about as fast as HNSW, and recall is 1. */
export const EXACT_RECORDS = 2_000;
export function statementsOf(schema, tables, compare) {
    const { indexId, records } = tables;
    const namespaces = `${quoteIdentifier(schema)}.namespaces`;
    const named = (name, text) => ({ name: `vector ${indexId} ${name}`, text });
    const ofIncluded = (name, build) => {
        const variants = new Map();
        return (included) => {
            const key = `${name} ${Number(included.vectors)}${Number(included.metadata)}${Number(included.data)}`;
            const known = variants.get(key) ?? named(key, build(included));
            variants.set(key, known);
            return known;
        };
    };
    const search = { indexId, records, namespaces, compare };
    return {
        lockNamespace: named('lock namespace', `select id, next_row from ${namespaces} where index_id = ${indexId} and name = $1 for no key update`),
        createNamespace: named('create namespace', `insert into ${namespaces} (index_id, name) values (${indexId}, $1) on conflict (index_id, name) do nothing`),
        upsert: named('upsert', upsertText(records, namespaces)),
        nearest: ofIncluded('nearest', (included) => nearestText(search, included, false)),
        nearestTuned: ofIncluded('nearest tuned', (included) => nearestText(search, included, true)),
        nearestExact: ofIncluded('nearest exact', (included) => exactText(search, included)),
        counts: named('counts', `select name, record_count from ${namespaces} where index_id = ${indexId} order by name`),
        size: named('size', `select pg_total_relation_size('${records}'::regclass) as bytes`),
    };
}
/**
 * A replaced record keeps its row; new ones are numbered from the namespace's next row without gaps, in the order of
 * the request. Counters and records change in one statement, under the lock taken before.
 */
function upsertText(records, namespaces) {
    return `with incoming as (
  select u.id, u.vec, u.metadata, u.data, u.place, old.row as kept
  from unnest($3::text[], $4::vector[], $5::jsonb[], $6::text[]) with ordinality as u (id, vec, metadata, data, place)
  left join ${records} old on old.namespace_id = $1::int and old.id = u.id
), written as (
  insert into ${records} (namespace_id, row, id, vec, metadata, has_metadata, data)
  select $1::int,
    coalesce(kept, $2::bigint - 1 + row_number() over (partition by kept is null order by place)),
    id, vec, coalesce(metadata, '{}'), metadata is not null, data
  from incoming order by place
  on conflict (namespace_id, id) do update set
    vec = excluded.vec, metadata = excluded.metadata, has_metadata = excluded.has_metadata, data = excluded.data
  returning row >= $2::bigint as is_new
), added as (
  select count(*) filter (where is_new) as n from written
)
update ${namespaces} set next_row = next_row + added.n, record_count = record_count + added.n
from added where id = $1::int and added.n > 0`;
}
const space = ({ namespaces, indexId }) => `space as materialized (
  select id, record_count from ${namespaces} where index_id = ${indexId} and name = $2
)`;
/** Columns inside: raw, so that only what is returned is turned into text. */
function inner({ compare }, included) {
    const columns = ['id', 'row', `${compare.score('vec', '$1::vector')} as score`];
    if (included.vectors)
        columns.push('vec');
    if (included.metadata)
        columns.push('has_metadata', 'metadata');
    if (included.data)
        columns.push('data');
    return columns.join(', ');
}
function outer(included) {
    const columns = ['id', 'score::text as score', 'exact'];
    if (included.vectors)
        columns.push('vec::text as vector');
    if (included.metadata)
        columns.push('case when has_metadata then metadata::text end as metadata');
    if (included.data)
        columns.push('data');
    return columns.join(', ');
}
/** The score as the sort key keeps the order in insertion order where scores are equal, and no index can serve it. */
function exactRows(search, included, condition) {
    return `(select ${inner(search, included)}, true as exact from ${search.records}
    where namespace_id = (select id from space)${condition}
    order by score desc, row limit $3::int)`;
}
/**
 * Both branches are there, and the count of the namespace, kept beside it, decides which one runs: the other's condition
 * is false before it reads a row. HNSW order is approximate (relaxed_order) and cannot have a second key, hence the
 * outer sort.
 */
function nearestText(search, included, tuned) {
    const { records, compare } = search;
    // reading the setting's result in LIMIT makes Postgres apply it before the scan starts
    const tuning = tuned ? `tuned as materialized (select set_config('hnsw.ef_search', $4, true)), ` : '';
    const limit = tuned ? '(select $3::int + 0 * length(set_config) from tuned)' : '$3::int';
    return `with ${tuning}${space(search)}, nearest as materialized (
  (select ${inner(search, included)}, false as exact from ${records}
    where namespace_id = (select id from space) and (select record_count from space) > ${EXACT_RECORDS}
    order by ${compare.nearestFirst('vec', '$1::vector')} limit ${limit})
  union all
  ${exactRows(search, included, ` and (select record_count from space) <= ${EXACT_RECORDS}`)}
)
select ${outer(included)} from nearest order by nearest.score desc, row`;
}
function exactText(search, included) {
    return `with ${space(search)}, nearest as materialized (
  ${exactRows(search, included, '')}
)
select ${outer(included)} from nearest order by nearest.score desc, row`;
}
//# sourceMappingURL=statements.js.map