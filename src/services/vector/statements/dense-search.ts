import { EF_SEARCH, MAX_EF_SEARCH } from '../vector-database.js';
import {
  type Included,
  type IndexShape,
  includedKey,
  type LeftOut,
  notSeen,
  Parameters,
  rawColumns,
  recordColumns,
  type Statement,
  type StatementCache,
  spaceCte,
} from './index-shape.js';

/** Up to so many records a namespace is compared as a whole: about as fast as HNSW, and recall is 1. */
export const EXACT_RECORDS = 2_000;

/** A condition on the metadata. */
export interface MetadataFilter {
  readonly jsonpath: string;
  /** The GIN index finds the matches. */
  readonly isIndexed: boolean;
}

/** A search for the nearest dense vectors. */
export interface DenseSearch {
  /** Packed, of type `vector`. */
  readonly vector: Buffer;
  readonly namespace: string;
  readonly topK: number;
  readonly included: Included;
  readonly filter: MetadataFilter | undefined;
  /** Rows that are left out. */
  readonly without: LeftOut | undefined;
}

/** How HNSW takes part. */
export interface GraphUse {
  /** The namespace, by its id, whose own HNSW index is searched. A wrong or outdated one costs time, never results. */
  readonly namespaceId: number;
  /** There are vectors outside the graph, because many records have them. */
  readonly repeats: boolean;
  /** `hnsw.ef_search` for this query; the connection's otherwise. */
  readonly ef: number | undefined;
}

export interface BoundStatement extends Statement {
  readonly values: readonly unknown[];
}

/**
 * Columns: those of the record, `score` as text, `exact` (every candidate was compared: no nearer record exists), `graph`, the id
 * of the namespace when it has an HNSW index that is worth its use, `repeats`, as in `GraphUse`, and with a filter and a graph
 * `tried`: the graph was asked.
 */
export function denseSearch(
  shape: IndexShape,
  cache: StatementCache,
  search: DenseSearch,
  graph: GraphUse | undefined,
): BoundStatement {
  const parameters = new Parameters();
  const builder = new DenseSearchText(shape, search, graph, parameters);
  // a filter is planned with its very text: whether an index helps depends on it
  if (builder.isFiltered) return { text: builder.filtered(), values: parameters.values };
  const how =
    graph === undefined
      ? 'exact'
      : `graph ${shape.dense?.rescored === undefined ? '' : 'of bits '}${graph.namespaceId}${graph.ef === undefined ? '' : ' ef'}${graph.repeats ? ' repeats' : ''}`;
  const statement = cache.get(`nearest ${how} ${includedKey(search.included)}`, () => builder.unfiltered());
  return { ...statement, values: builder.values };
}

class DenseSearchText {
  private readonly vector: string;
  private readonly namespace: string;
  private readonly topK: string;
  private readonly ef: string | undefined;
  private readonly score: string;
  private readonly nearestFirst: string;

  constructor(
    private readonly shape: IndexShape,
    private readonly search: DenseSearch,
    private readonly graph: GraphUse | undefined,
    private readonly parameters: Parameters,
  ) {
    if (shape.dense === undefined) throw new Error('the index has no dense part');
    this.vector = parameters.add(search.vector, 'vector');
    this.namespace = parameters.add(search.namespace, 'text');
    this.topK = parameters.add(search.topK, 'int');
    this.ef = graph?.ef === undefined ? undefined : parameters.add(String(graph.ef), 'text');
    this.score = shape.dense.score('vec', this.vector);
    this.nearestFirst = shape.dense.nearestFirst('vec', this.vector);
  }

  get values(): readonly unknown[] {
    return this.parameters.values;
  }

  /**
   * With a graph both branches are there, and the namespace's row decides which one runs: the other's condition is false
   * before it reads a row. HNSW order is approximate (relaxed_order) and cannot have a second key, hence the outer sort.
   */
  unfiltered(): string {
    const columns = rawColumns(this.shape, this.search.included).join(', ');
    const graph = this.graphBranch(columns);
    const exact = `(select ${columns}, ${this.score} as score, true as exact from ${this.shape.records}
    where namespace_id = (select id from space)${graph === undefined ? '' : ` and ${this.elsewhere}`}
    order by score desc, row limit ${this.topK})`;
    const branches = [...(graph === undefined ? [] : [graph]), ...this.repeated(columns), exact].join(
      '\n  union all\n  ',
    );
    return `with ${this.common}, nearest as materialized (
  ${branches}
)
select ${recordColumns(this.shape, this.search.included, 'nearest')}, ${this.about}
from nearest order by nearest.score desc, nearest.row limit ${this.topK}`;
  }

  /**
   * With a graph, a sample of the namespace tells how many records match. Where walking through the graph costs little beside
   * comparing all matches, the nearest records, whether they match or not, are taken from it, so many that twice as many as are
   * asked for should match. If enough of them do, they are the nearest matches; if not, the filter goes against the vectors, and
   * all matches are compared.
   */
  filtered(): string {
    const { records } = this.shape;
    const conditions = this.conditions();
    const branches = [
      ...(this.graph === undefined
        ? []
        : [
            `select row, score, false as exact from found where (select count(*) from found) >= ${this.topK}`,
          ]),
      `(select row, score, true as exact from matches${this.graph === undefined ? '' : ` where (select count(*) from found) < ${this.topK}`}
    order by score desc, row limit ${this.topK})`,
    ];
    return `with ${spaceCte(this.shape, this.namespace)}, matches as materialized (
  select row, ${this.score} as score from ${records} where namespace_id = (select id from space) and ${conditions}
)${this.graph === undefined ? '' : this.foundByGraph(this.graph, conditions)}, nearest as materialized (
  ${branches.join('\n  union all\n  ')}
)
select ${recordColumns(this.shape, this.search.included, 'r')}, ${this.about}
from nearest cross join lateral (
  -- without LIMIT, Postgres joins 1,000 of them with the whole namespace
  select * from ${records} where namespace_id = (select id from space) and row = nearest.row limit 1) r
order by nearest.score desc, nearest.row`;
  }

  private conditions(): string {
    const { filter, without } = this.search;
    return [
      ...(filter === undefined ? [] : [`metadata @@ ${this.parameters.add(filter.jsonpath, 'jsonpath')}`]),
      ...(without === undefined ? [] : [notSeen(this.shape, 'row', without, this.parameters)]),
    ].join(' and ');
  }

  /** CTEs down to `found`: the nearest matches, by the graph, or fewer than are asked for. */
  private foundByGraph({ namespaceId, repeats }: GraphUse, conditions: string): string {
    const { records } = this.shape;
    const { topK, without, filter } = this.search;
    const wanted = this.parameters.add(topK + (without?.count ?? 0), 'int');
    // Postgres fills `matches` as far as it is read, and whoever reads on later goes on from there
    const fewMatch = filter?.isIndexed
      ? ` and (select count(*) from (select from matches limit ${FEW + 1}) m) > ${FEW}`
      : '';
    return `, sample as materialized (
  select count(*) as seen, count(*) filter (where ${conditions}) as hits
  from generate_series(1, (select ${SAMPLE} from space
    where id = ${namespaceId} and record_count > ${EXACT_RECORDS}${fewMatch})) as n cross join lateral (
    select row, metadata from ${records} where namespace_id = (select id from space) and row >=
      (select next_row - 1 - (hashint8extended(n, 0) & ${MAX_BIGINT}) % record_count from space) order by row limit 1) one
), reach as materialized (
  select case when needed <= least(${MAX_REACH}, record_count * least(${REACH_PER_MATCH} * share, ${REACH_PER_RECORD}))
    then greatest(ceil(needed), ${this.ef ?? '0'}::int)::int else 0 end as n
  from space, (select hits::float8 / nullif(seen, 0) as share from sample) s,
    lateral (select ${this.shape.dense?.rescored ?? REACH_FACTOR} * ${wanted} / nullif(share, 0) as needed) r
), tuned as materialized (
  select n, set_config('hnsw.ef_search', greatest(${EF_SEARCH}, least(${MAX_EF_SEARCH}, n))::text, true) from reach
), near as materialized (
  select row, ${this.score} as score, ${conditions} as is_meant from ${records}
  where namespace_id = ${namespaceId} and not is_repeated and (select id from space) = ${namespaceId}
  order by ${this.nearestFirst} limit (select n + 0 * length(set_config) from tuned)
), found as materialized (
  select row, score from (select row, score from near where is_meant${
    repeats
      ? `
    union all (${this.repeatedText('row', namespaceId, ` and ${conditions}`, '(select n from reach) > 0')}
    )) n where score >= (select min(score) from near)`
      : ') n'
  } order by score desc, row limit ${this.topK}
)`;
  }

  private get common(): string {
    // reading the setting's result in LIMIT makes Postgres apply it before the scan starts
    const tuned =
      this.ef === undefined
        ? ''
        : `tuned as materialized (select set_config('hnsw.ef_search', ${this.ef}, true)), `;
    return `${tuned}${spaceCte(this.shape, this.namespace)}`;
  }

  private get about(): string {
    const tried =
      this.graph === undefined || !this.isFiltered ? '' : '\n  (select n > 0 from reach) as tried,';
    return `nearest.score::text as score, nearest.exact,${tried}
  (select case when hnsw and record_count > ${EXACT_RECORDS} then id end from space) as graph, (select repeats from space) as repeats`;
  }

  get isFiltered(): boolean {
    return this.search.filter !== undefined || this.search.without !== undefined;
  }

  private graphBranch(columns: string): string | undefined {
    if (this.graph === undefined) return undefined;
    const { namespaceId } = this.graph;
    const rescored = this.shape.dense?.rescored;
    // whoever asks for more candidates wants more of them compared
    const candidates = this.ef === undefined ? '' : `, ${this.ef}::int`;
    const wanted = rescored === undefined ? this.topK : `greatest(${rescored} * ${this.topK}${candidates})`;
    const limit =
      this.ef === undefined
        ? wanted
        : `(select ceil(${wanted} * case when ${this.topK} > ${SURE_TOP_K} then ${UNSURE_FACTOR} else 1 end)::int + 0 * length(set_config) from tuned)`;
    // the literal id is what lets the planner take the HNSW index of this namespace
    return `(select ${columns}, ${this.score} as score, false as exact from ${this.shape.records}
    where namespace_id = ${namespaceId} and not is_repeated and ${this.here}
    order by ${this.nearestFirst} limit ${limit})`;
  }

  /** Records that the graph leaves out. */
  private repeated(columns: string): string[] {
    if (this.graph === undefined || !this.graph.repeats) return [];
    return [
      `(select *, false as exact from (${this.repeatedText(columns, this.graph.namespaceId, '', this.here)}) r)`,
    ];
  }

  /** The nearest of the vectors that many records have come first, and give their records until there are enough. */
  private repeatedText(columns: string, namespaceId: number, conditions: string, when: string): string {
    const { records, repeated, dense } = this.shape;
    return `select ${columns}, score from (
      select digest, ${this.score} as score from ${repeated} where namespace_id = ${namespaceId} and ${when} order by score desc) g
    cross join lateral (select * from ${records} r where namespace_id = ${namespaceId} and is_repeated
      and ${dense?.digest('r.vec')} = g.digest${conditions} order by row limit ${this.topK}) r
    order by score desc limit ${this.topK}`;
  }

  /** The graph's branch applies. */
  private get here(): string {
    return `(select id from space) = ${this.graph?.namespaceId} and (select record_count from space) > ${this.exactRecords}`;
  }

  /** It does not. */
  private get elsewhere(): string {
    return `((select id from space) <> ${this.graph?.namespaceId} or (select record_count from space) <= ${this.exactRecords})`;
  }

  private get exactRecords(): string {
    return this.ef === undefined
      ? String(EXACT_RECORDS)
      : `greatest(${EXACT_RECORDS}, ${RECORDS_PER_EF} * greatest(${this.ef}::int, ${this.topK}))`;
  }
}

/** A record that HNSW keeps while it searches, of a large topK, takes as long as so many that are compared (64 and 256 dimensions). */
const RECORDS_PER_EF = 20;

/** Up to here ef_search can be twice topK; of more, the last ones are often missed unless so many times as many are taken. */
const SURE_TOP_K = 500;
const UNSURE_FACTOR = 1.5;

/** Matches that are compared at once, without a look at how many more there are: 2 ms, three times what the sample takes. */
const FEW = 500;
/**
 * Records that are looked at to learn what share of all matches: 86 of 30,000, which take 0.7 ms. Always the same ones, which are
 * in memory then; among the newest as many as there are, where rows are gone.
 */
const SAMPLE = 'greatest(64, least(512, sqrt(record_count) / 2))::int';
const MAX_BIGINT = '9223372036854775807';
/** So many times as many records are taken from the graph as should hold the matches that are asked for. */
const REACH_FACTOR = 2;
/**
 * A record from the graph costs 8 to 11 µs, comparing a match that an index finds 3.5 to 4.7 µs, looking at every record for matches
 * 1.2 to 1.7 µs each (64 dimensions): what is lost where the graph was asked in vain is about a tenth of the exact search.
 */
const REACH_PER_MATCH = 0.04;
const REACH_PER_RECORD = 0.02;
/** pgvector goes no farther (hnsw.max_scan_tuples). */
const MAX_REACH = 20_000;
