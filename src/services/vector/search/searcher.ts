import type { Queryable } from '../../../lib/postgres/postgres.js';
import { mapped } from '../../../lib/slices.js';
import { translated } from '../errors.js';
import type { IndexParts } from '../index-parts.js';
import type { SearchPlan } from '../metrics.js';
import { recordText } from '../records/record-text.js';
import { denseSearch, type GraphUse } from '../statements/dense-search.js';
import {
  type Included,
  includedKey,
  type LeftOut,
  NOTHING_INCLUDED,
  type RecordRow,
} from '../statements/index-shape.js';
import { rowsText } from '../statements/read-statements.js';
import { sparseSearch } from '../statements/sparse-search.js';
import { EF_SEARCH, MAX_EF_SEARCH } from '../vector-database.js';
import { float32Text, fuse } from './fusion.js';
import type { GraphHint, GraphHints } from './graph-hints.js';
import type { PreparedQuery } from './prepared-query.js';

/** One entry of a result. */
export interface Hit {
  readonly row: string;
  /** The entry as JSON. */
  readonly text: string;
}

/** Rows that a search skips, and how many it wants of the others. */
export interface Wanted {
  readonly topK: number;
  readonly without: LeftOut | undefined;
}

/** The best entries, and how they were found. */
export interface Found {
  readonly hits: readonly Hit[];
  readonly plan: SearchPlan;
}

type ScoredRow = RecordRow & { readonly score: string };
type DenseRow = ScoredRow & {
  readonly exact: boolean;
  readonly graph: number | null;
  readonly repeats: boolean;
  readonly tried?: boolean;
};

type Run = (graph: GraphUse | undefined) => Promise<readonly DenseRow[]>;

/** Finds the nearest records. */
export class Searcher {
  constructor(
    private readonly parts: IndexParts,
    private readonly hints: GraphHints,
  ) {}

  /** The nearest records, best score first. @param connection where it runs: the pool, or a transaction */
  async search(
    connection: Queryable,
    namespace: string,
    query: PreparedQuery,
    wanted: Wanted = { topK: query.topK, without: undefined },
  ): Promise<Found> {
    return translated(async () => {
      const { vector, terms } = query;
      const { searches } = this.parts.counters;
      if (vector !== undefined && terms !== undefined) {
        searches.hybrid += 1;
        return {
          hits: await this.hybrid(connection, namespace, { ...query, vector, terms }, wanted),
          plan: 'hybrid',
        };
      }
      const rows =
        vector === undefined
          ? await this.sparse(connection, namespace, query, wanted, query.included)
          : await this.dense(connection, namespace, query, wanted, query.included);
      const plan = planOf(query, rows);
      searches[plan] += 1;
      const near = rows.filter(({ score }) => isNear(query, Number(score)));
      const hits = await mapped(near, (row) => ({ row: row.row, text: recordText(row, row.score) }));
      return { hits, plan };
    });
  }

  private async dense(
    connection: Queryable,
    namespace: string,
    query: PreparedQuery,
    { topK, without }: Wanted,
    included: Included,
  ): Promise<readonly ScoredRow[]> {
    const { shape, cache } = this.parts;
    const search = {
      vector: query.vector as Buffer,
      namespace,
      topK,
      included,
      filter: query.filter,
      without,
    };
    const run: Run = async (use) => {
      const { text, values, name } = denseSearch(shape, cache, search, use);
      return (await connection.query<DenseRow>(text, values, name)).rows;
    };
    const graph = query.exact ? undefined : this.hints.get(namespace);
    const isFiltered = query.filter !== undefined || without !== undefined;
    const ask = async (known: GraphHint | undefined) =>
      isFiltered
        ? this.filtered(namespace, query, topK, known, run)
        : this.unfiltered(namespace, query, topK, known, run);
    const rows = await ask(graph);
    // vectors have left the graph since it was last asked
    const isOutdated = graph !== undefined && !graph.repeats && rows[0]?.exact === false && rows[0].repeats;
    return isOutdated ? ask(this.hints.get(namespace)) : rows;
  }

  private async unfiltered(
    namespace: string,
    query: PreparedQuery,
    topK: number,
    graph: GraphHint | undefined,
    run: Run,
  ): Promise<readonly DenseRow[]> {
    // twice as many are kept as are asked for: of bits as many as are rescored
    const ef = efOf(query, topK * ((this.parts.shape.dense?.rescored ?? 2) / 2));
    const rows = await run(graph && { ...graph, ef });
    const [best] = rows;
    this.hints.learn(namespace, best?.graph, best?.repeats ?? false);
    // HNSW may give up before it has found enough; topK is filled wherever the namespace can
    return graph === undefined || rows.length >= topK || best?.exact === true ? rows : run(undefined);
  }

  private async filtered(
    namespace: string,
    { filter, ef }: PreparedQuery,
    topK: number,
    graph: GraphHint | undefined,
    run: Run,
  ): Promise<readonly DenseRow[]> {
    const jsonpath = filter?.jsonpath ?? '';
    const use = this.hints.isExact(namespace, jsonpath, topK) ? undefined : graph;
    const rows = await run(use && { ...use, ef });
    const [best] = rows;
    // where no record matches, nothing tells of the graph
    if (best !== undefined) this.hints.learn(namespace, best.graph, best.repeats);
    if (use !== undefined && (best === undefined || (best.graph === use.namespaceId && best.tried === false)))
      this.hints.learnExact(namespace, jsonpath, topK);
    return rows;
  }

  private async sparse(
    connection: Queryable,
    namespace: string,
    query: PreparedQuery,
    { topK, without }: Wanted,
    included: Included,
  ): Promise<readonly ScoredRow[]> {
    const { terms, idf, filter } = query;
    if (terms === undefined || terms.size === 0) return [];
    const search = { terms, idf, namespace, topK, included, filter: filter?.jsonpath, without };
    const { text, values } = sparseSearch(this.parts.shape, search);
    return (await connection.query<ScoredRow>(text, values)).rows;
  }

  private async hybrid(
    connection: Queryable,
    namespace: string,
    query: PreparedQuery,
    { topK, without }: Wanted,
  ): Promise<Hit[]> {
    const wanted = { topK: query.candidates, without };
    const dense = await this.dense(connection, namespace, query, wanted, NOTHING_INCLUDED);
    const sparse = await this.sparse(connection, namespace, query, wanted, NOTHING_INCLUDED);
    const best = fuse(dense.map(ranked), sparse.map(ranked), query.fusion)
      .slice(0, topK)
      .filter(({ score }) => isNear(query, score));
    const rows = await this.recordsOf(connection, namespace, best, query.included);
    // one that was deleted meanwhile is left out
    return best.flatMap(({ row, score }) => {
      const record = rows.get(row);
      return record === undefined ? [] : [{ row, text: recordText(record, float32Text(score)) }];
    });
  }

  async recordsOf(
    connection: Queryable,
    namespace: string,
    hits: readonly { readonly row: string }[],
    included: Included,
  ): Promise<Map<string, RecordRow>> {
    const { shape, cache } = this.parts;
    const { text, name } = cache.get(`rows ${includedKey(included)}`, () => rowsText(shape, included));
    const found = await connection.query<RecordRow>(text, [namespace, hits.map(({ row }) => row)], name);
    return new Map(found.rows.map((row) => [row.row, row]));
  }
}

/** Where there is no record nothing tells of a graph. */
function planOf({ vector }: PreparedQuery, [best]: readonly (ScoredRow | DenseRow)[]): SearchPlan {
  if (vector === undefined) return 'sparse';
  return best !== undefined && 'exact' in best && !best.exact ? 'graph' : 'exact';
}

function isNear({ minScore }: PreparedQuery, score: number): boolean {
  return minScore === undefined || score >= minScore;
}

function ranked({ row, score }: ScoredRow): { row: string; score: number } {
  return { row, score: Number(score) };
}

/** @returns undefined where the connection's own value does */
function efOf({ ef }: PreparedQuery, topK: number): number | undefined {
  const chosen = Math.min(ef ?? Math.max(2 * topK, EF_SEARCH), MAX_EF_SEARCH);
  return chosen === EF_SEARCH && topK <= EF_SEARCH ? undefined : chosen;
}
