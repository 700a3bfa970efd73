import type { Queryable } from '../../../lib/postgres/postgres.js';
import { translated } from '../errors.js';
import type { Literal, Path } from '../filter/filter-ast.js';
import { groupsJsonpath, isIndexed, valueJsonpath } from '../filter/filter-jsonpath.js';
import type { IndexParts } from '../index-parts.js';
import { recordText } from '../records/record-text.js';
import { NOTHING_INCLUDED } from '../statements/index-shape.js';
import { groupsText } from '../statements/read-statements.js';
import { float32Text } from './fusion.js';
import type { Grouping } from './grouping.js';
import type { PreparedQuery } from './prepared-query.js';
import type { Found, Hit, Searcher } from './searcher.js';

/** A round takes so many times as many entries as are wanted, at least and at most so many. */
const ROUND_FACTOR = 4;
const MIN_ROUND = 50;
const MAX_ROUND = 2_000;

/**
 * The nearest records, of which at most `size` have the same value of the field; those without one, or with one that is an array
 * or an object, are left out. Rounds: the nearest are taken until some groups are full, then the nearest that are in none of these.
 * Each round that does not end the search fills a group, so there are no more of them than topK and one.
 * @param without a record that is left out
 */
export async function groupedSearch(
  parts: IndexParts,
  searcher: Searcher,
  connection: Queryable,
  namespace: string,
  query: PreparedQuery & { readonly grouping: Grouping },
  without: string | undefined,
): Promise<Found> {
  const { grouping, topK } = query;
  const counts = new Map<Literal, number>();
  const accepted = new Map<string, Hit>();
  let take = Math.min(MAX_ROUND, Math.max(MIN_ROUND, ROUND_FACTOR * topK * grouping.size));
  for (;;) {
    const full = [...counts].flatMap(([value, count]) => (count >= grouping.size ? [value] : []));
    const round = { ...query, ...roundOf(grouping, full), included: NOTHING_INCLUDED, candidates: 3 * take };
    const { hits, plan } = await searcher.search(connection, namespace, round, {
      topK: take,
      without: undefined,
    });
    const values = await valuesOf(parts, connection, namespace, grouping.path, hits);
    let isNew = false;
    for (const hit of hits) {
      const value = values.get(hit.row);
      if (accepted.size >= topK) break;
      if (value === undefined || hit.row === without || accepted.has(hit.row)) continue;
      const count = counts.get(value) ?? 0;
      if (count >= grouping.size) continue;
      counts.set(value, count + 1);
      accepted.set(hit.row, hit);
      isNew = true;
    }
    const isOver = accepted.size >= topK || hits.length < take || (!isNew && take === MAX_ROUND);
    if (isOver) return { hits: await complete(searcher, connection, namespace, query, accepted), plan };
    take = Math.min(MAX_ROUND, 2 * take);
  }
}

function roundOf({ path, filter }: Grouping, full: readonly Literal[]): Pick<PreparedQuery, 'filter'> {
  return {
    filter: {
      jsonpath: groupsJsonpath(filter, path, full),
      isIndexed: filter !== undefined && isIndexed(filter),
    },
  };
}

/** By row. Numbers and booleans that a filter takes for equal are one group. */
async function valuesOf(
  { shape }: IndexParts,
  connection: Queryable,
  namespace: string,
  path: Path,
  hits: readonly Hit[],
): Promise<ReadonlyMap<string, Literal>> {
  const rows = hits.map(({ row }) => row);
  const { rows: found } = await translated(() =>
    connection.query<{ row: string; value: string }>(groupsText(shape), [
      namespace,
      rows,
      valueJsonpath(path),
    ]),
  );
  return new Map(
    found.map(({ row, value }) => {
      const literal = JSON.parse(value) as Literal;
      return [row, typeof literal === 'boolean' ? Number(literal) : literal];
    }),
  );
}

async function complete(
  searcher: Searcher,
  connection: Queryable,
  namespace: string,
  { included }: PreparedQuery,
  accepted: ReadonlyMap<string, Hit>,
): Promise<Hit[]> {
  const hits = [...accepted.values()];
  if (!included.vectors && !included.metadata && !included.data) return hits;
  const records = await translated(() => searcher.recordsOf(connection, namespace, hits, included));
  return hits.flatMap(({ row, text }) => {
    const record = records.get(row);
    const { score } = JSON.parse(text) as { score: number };
    return record === undefined ? [] : [{ row, text: recordText(record, float32Text(score)) }];
  });
}
