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

/** A search for the nearest dense vectors. */
export interface DenseSearch {
  /** Packed, of type `vector`. */
  readonly vector: Buffer;
  readonly namespace: string;
  readonly topK: number;
  readonly included: Included;
  /** Condition on the metadata as jsonpath. */
  readonly filter: string | undefined;
  /** Rows that are left out. */
  readonly without: LeftOut | undefined;
}

/** How HNSW takes part. */
export interface GraphUse {
  /** The namespace, by its id, whose own HNSW index is searched. A wrong or outdated one costs time, never results. */
  readonly namespaceId: number;
  /** `hnsw.ef_search` for this query; the connection's otherwise. */
  readonly ef: number | undefined;
}

export interface BoundStatement extends Statement {
  readonly values: readonly unknown[];
}

/**
 * Columns: those of the record, `score` as text, `exact` (every candidate was compared: no nearer record exists) and
 * `graph`, the id of the namespace when it has an HNSW index that is worth its use.
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
    graph === undefined ? 'exact' : `graph ${graph.namespaceId}${graph.ef === undefined ? '' : ' ef'}`;
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
    const graph = this.graphBranch(columns, `(select record_count from space) > ${EXACT_RECORDS}`);
    const exact = `(select ${columns}, ${this.score} as score, true as exact from ${this.shape.records}
    where namespace_id = (select id from space)${graph === undefined ? '' : ` and ${this.elsewhere}`}
    order by score desc, row limit ${this.topK})`;
    const branches = [...(graph === undefined ? [] : [graph]), exact].join('\n  union all\n  ');
    return `with ${this.common}, nearest as materialized (
  ${branches}
)
select ${recordColumns(this.shape, this.search.included, 'nearest')}, ${this.about}
from nearest order by nearest.score desc, nearest.row`;
  }

  /**
   * The matches are listed up to the number from which HNSW is faster than comparing all of them; when the list is
   * complete it has the answer, otherwise HNSW walks on until enough of what it meets matches.
   */
  filtered(): string {
    const { records } = this.shape;
    const { filter, without, included } = this.search;
    const conditions = [
      ...(filter === undefined ? [] : [`metadata @@ ${this.parameters.add(filter, 'jsonpath')}`]),
      ...(without === undefined ? [] : [notSeen(this.shape, 'row', without, this.parameters)]),
    ].join(' and ');
    const graph = this.graphBranch(
      'id, row',
      `${conditions} and (select count(*) from matches) > (select n from few)`,
    );
    const few = graph === undefined ? '' : `, few as materialized (select ${FEW} as n from space)`;
    const limit = graph === undefined ? '' : ' limit (select n + 1 from few)';
    const exact = `(select id, row, score, true as exact from matches${graph === undefined ? '' : ' where (select count(*) from matches) <= (select n from few)'}
    order by score desc, row limit ${this.topK})`;
    const branches = [...(graph === undefined ? [] : [graph]), exact].join('\n  union all\n  ');
    return `with ${this.common}${few}, matches as materialized (
  select id, row, ${this.score} as score from ${records}
  where namespace_id = (select id from space) and ${conditions}${limit}
), nearest as materialized (
  ${branches}
)
select ${recordColumns(this.shape, included, 'r')}, ${this.about}
from ${this.found} ${records} r on r.namespace_id = (select id from space) and r.row = nearest.row
order by nearest.score desc, nearest.row`;
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
    const wasComplete =
      this.graph === undefined || !this.isFiltered
        ? 'nearest.exact'
        : `coalesce(nearest.exact,
    (select id from space) = ${this.graph.namespaceId} and (select count(*) from matches) <= (select n from few)) as exact`;
    return `nearest.score::text as score, ${wasComplete},
  (select case when hnsw and record_count > ${EXACT_RECORDS} then id end from space) as graph`;
  }

  /** With a graph there is a row also when nothing was found: it tells that nothing matches, so that nobody looks again. */
  private get found(): string {
    return this.graph === undefined
      ? 'nearest join'
      : '(values (1)) as always left join nearest on true left join';
  }

  get isFiltered(): boolean {
    return this.search.filter !== undefined || this.search.without !== undefined;
  }

  private graphBranch(columns: string, condition: string): string | undefined {
    if (this.graph === undefined) return undefined;
    const { namespaceId } = this.graph;
    const limit =
      this.ef === undefined ? this.topK : `(select ${this.topK} + 0 * length(set_config) from tuned)`;
    // the literal id is what lets the planner take the HNSW index of this namespace
    return `(select ${columns}, ${this.score} as score, false as exact from ${this.shape.records}
    where namespace_id = ${namespaceId} and (select id from space) = ${namespaceId} and ${condition}
    order by ${this.nearestFirst} limit ${limit})`;
  }

  /** The graph's branch does not apply. */
  private get elsewhere(): string {
    return `((select id from space) <> ${this.graph?.namespaceId} or (select record_count from space) <= ${EXACT_RECORDS})`;
  }
}

/**
 * So many matches are compared as quickly as HNSW finds ten of them. HNSW's time grows with 1 / (share of matches), that
 * of comparing with their number: they meet at about 10 times the root of all records (3,300 of 100,000 x 384 measured).
 */
const FEW = `least(10000, greatest(${EXACT_RECORDS}, 10 * sqrt(record_count)))::int`;
