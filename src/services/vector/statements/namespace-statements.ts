import type { IndexShape } from './index-shape.js';

/** $1 namespace. Locks its row until the transaction ends; readers go on. */
export function lockNamespaceText({ namespaces, indexId }: IndexShape): string {
  return `select id, next_row, hnsw from ${namespaces} where index_id = ${indexId} and name = $1 for no key update`;
}

/** $1 namespace */
export function createNamespaceText({ namespaces, indexId }: IndexShape): string {
  return `insert into ${namespaces} (index_id, name) values (${indexId}, $1) on conflict (index_id, name) do nothing`;
}

/** $1 names. Locks their rows, in one order whoever asks. */
export function lockNamespacesText({ namespaces, indexId }: IndexShape): string {
  return `select id, name from ${namespaces} where index_id = ${indexId} and name = any($1::text[]) order by id for update`;
}

/** Locks every namespace of the index. */
export function lockIndexText({ namespaces, indexId }: IndexShape): string {
  return `select id, name from ${namespaces} where index_id = ${indexId} order by id for update`;
}

/** $1 namespace ids: what removes their records, a statement each. */
export function emptyTexts({
  records,
  postings,
  sparse,
  resumableQueries,
  namespaces,
}: IndexShape): string[] {
  return [
    `delete from ${records} where namespace_id = any($1::int[])`,
    ...(sparse ? [`delete from ${postings} where namespace_id = any($1::int[])`] : []),
    `delete from ${resumableQueries} where namespace_id = any($1::int[])`,
    `update ${namespaces} set next_row = 0, record_count = 0 where id = any($1::int[])`,
  ];
}

/** $1 namespace ids: whether any other namespace has records. */
export function othersWithRecordsText({ namespaces, indexId }: IndexShape): string {
  return `select 1 from ${namespaces} where index_id = ${indexId} and id <> all($1::int[]) and record_count > 0 limit 1`;
}

function recordTables({ records, postings, sparse }: IndexShape): string {
  return [records, ...(sparse ? [postings] : [])].join(', ');
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
