import type { IndexShape } from './index-shape.js';

/** $1 namespace. Locks its row until the transaction ends; readers go on. */
export function lockNamespaceText({ namespaces, indexId }: IndexShape): string {
  return `select id, next_row, hnsw, graph_deferred from ${namespaces} where index_id = ${indexId} and name = $1 for no key update`;
}

/** $1 namespace */
export function createNamespaceText({ namespaces, indexId }: IndexShape): string {
  return `insert into ${namespaces} (index_id, name) values (${indexId}, $1) on conflict (index_id, name) do nothing`;
}

/** $1 names. Locks their rows, in one order whoever asks: that of their names, because a reset changes ids. */
export function lockNamespacesText({ namespaces, indexId }: IndexShape): string {
  return `select id, name from ${namespaces} where index_id = ${indexId} and name = any($1::text[]) order by name for update`;
}

/** Locks every namespace of the index. */
export function lockIndexText({ namespaces, indexId }: IndexShape): string {
  return `select id, name from ${namespaces} where index_id = ${indexId} order by name for update`;
}

/** $1 namespace ids, whose resumable queries end. */
export function endQueriesText({ resumableQueries }: IndexShape): string {
  return `delete from ${resumableQueries} where namespace_id = any($1::int[])`;
}

/** $1 namespace ids, whose records the sweeper deletes. */
export function leaveToSweeperText({ droppedNamespaces, indexId }: IndexShape): string {
  return `insert into ${droppedNamespaces} (id, index_id) select id, ${indexId} from unnest($1::int[]) as d (id)`;
}

/** $1 namespace id, $2 whether its graph is to be built later */
export function deferGraphText({ namespaces }: IndexShape): string {
  return `update ${namespaces} set graph_deferred = $2 where id = $1`;
}

/** $1 namespace ids. They get new ones, so nothing belongs to them any more, however much it was. */
export function renewNamespacesText({ namespaces }: IndexShape): string {
  return `update ${namespaces} set id = default, next_row = 0, record_count = 0, hnsw = false, repeats = false where id = any($1::int[])`;
}

/** $1 namespace ids, whose tables were emptied. */
export function resetCountsText({ namespaces }: IndexShape): string {
  return `update ${namespaces} set next_row = 0, record_count = 0, repeats = false where id = any($1::int[])`;
}

/** A row where there is something to sweep. */
export function anyDroppedText({ droppedNamespaces, indexId }: IndexShape): string {
  return `select from ${droppedNamespaces} where index_id = ${indexId} limit 1`;
}

/** Rows that the sweeper deletes in one statement: 0.1 s. */
const SWEPT_RECORDS = 2_000;
const SWEPT_POSTINGS = 20_000;

/**
 * Deletes some of what one dropped namespace has left, and forgets the namespace when there is nothing. Columns: `mine`, there was
 * one that no other gateway is sweeping; `left`, there is any at all.
 */
export function sweepText({
  records,
  postings,
  repeated,
  dense,
  sparse,
  droppedNamespaces,
  indexId,
}: IndexShape): string {
  const some = (table: string, limit: number) => `delete from ${table} where ctid = any(array(
    select ctid from ${table} where namespace_id = (select id from space) limit ${limit})) returning 1`;
  return `with space as materialized (
  select id from ${droppedNamespaces} where index_id = ${indexId} order by id limit 1 for update skip locked
), swept as (
  ${some(records, SWEPT_RECORDS)}
)${sparse ? `, unposted as (\n  ${some(postings, SWEPT_POSTINGS)}\n)` : ''}${dense === undefined ? '' : `, unrepeated as (\n  ${some(repeated, SWEPT_RECORDS)}\n)`}, finished as (
  delete from ${droppedNamespaces} where id = (select id from space)
    and not exists (select from swept)${sparse ? ' and not exists (select from unposted)' : ''}${dense === undefined ? '' : ' and not exists (select from unrepeated)'}
)
select exists (select from space) as mine,
  exists (select from ${droppedNamespaces} where index_id = ${indexId}) as left`;
}

/** $1 namespace ids: whether any other namespace has records. */
export function othersWithRecordsText({ namespaces, indexId }: IndexShape): string {
  return `select 1 from ${namespaces} where index_id = ${indexId} and id <> all($1::int[]) and record_count > 0 limit 1`;
}

function recordTables({ records, postings, repeated, dense, sparse }: IndexShape): string {
  return [records, ...(sparse ? [postings] : []), ...(dense === undefined ? [] : [repeated])].join(', ');
}

/** Nobody reads or writes records until the transaction ends. */
export function lockTablesText(shape: IndexShape): string {
  return `lock table ${recordTables(shape)} in access exclusive mode`;
}

export function truncateText(shape: IndexShape): string {
  return `truncate ${recordTables(shape)}`;
}

/** $1 namespace ids */
export function dropNamespacesText({ namespaces }: IndexShape): string {
  return `delete from ${namespaces} where id = any($1::int[])`;
}

/** $1 namespace id, $2 new name */
export function renameNamespaceText({ namespaces }: IndexShape): string {
  return `update ${namespaces} set name = $2 where id = $1::int`;
}
