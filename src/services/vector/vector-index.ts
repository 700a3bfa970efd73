import { HttpError, toHttpError } from '../../http/errors.js';
import type { Queryable } from '../../lib/postgres/postgres.js';
import { sliced } from '../../lib/slices.js';
import { type EmbeddedText, type Embedders, embedTexts, type Parts } from './embedder/embedder.js';
import { translated } from './errors.js';
import type { IndexParts } from './index-parts.js';
import { BulkUpdater } from './records/bulk-updater.js';
import { packOne } from './records/components.js';
import { Namespaces } from './records/namespaces.js';
import { isAbsent } from './records/record-batch.js';
import { RecordDeleter } from './records/record-deleter.js';
import { RecordReader } from './records/record-reader.js';
import { RecordUpdater } from './records/record-updater.js';
import { RecordWriter } from './records/record-writer.js';
import type { AnyQuery, GroupedQuery, TextQuery, VectorQuery } from './schemas/queries.js';
import type { AnyUpdate, TextRecord, UpdateBody, VectorRecord } from './schemas/records.js';
import type { GraphHints } from './search/graph-hints.js';
import { groupedSearch } from './search/grouped-search.js';
import { type PreparedQuery, prepareQuery } from './search/prepared-query.js';
import { ResumableQueries } from './search/resumable-queries.js';
import { type Found, Searcher } from './search/searcher.js';
import type { WorkKind } from './shared-connections.js';
import type { RecordRow } from './statements/index-shape.js';

/** How many queries of one request run at once: each takes a connection of the pool that all requests share. */
const QUERIES_AT_ONCE = 4;

/** One index whose tables are there, as one token works with it. */
export class VectorIndex {
  readonly writer: RecordWriter;
  readonly deleter: RecordDeleter;
  readonly reader: RecordReader;
  readonly namespaces: Namespaces;
  readonly resumable: ResumableQueries;
  private readonly updater: RecordUpdater;
  private readonly bulkUpdater: BulkUpdater;
  private readonly searcher: Searcher;
  /** @param onChange namespaces have grown or gone, so that HNSW indexes may have to be built or removed */
  constructor(
    private readonly parts: IndexParts,
    hints: GraphHints,
    private readonly embedders: Embedders,
    onChange: () => void,
  ) {
    this.writer = new RecordWriter(this.parts, onChange);
    this.deleter = new RecordDeleter(this.parts);
    this.updater = new RecordUpdater(this.parts);
    this.bulkUpdater = new BulkUpdater(this.parts);
    this.reader = new RecordReader(this.parts, {
      dense: embedders.dense?.model ?? '',
      sparse: embedders.sparse?.model ?? '',
    });
    this.namespaces = new Namespaces(this.parts, onChange);
    this.searcher = new Searcher(this.parts, hints);
    this.resumable = new ResumableQueries(this.parts, this.searcher);
  }

  get limits(): { readonly maxLineBytes: number } {
    return { maxLineBytes: this.parts.settings.bodyLimit };
  }

  /** The results of all queries, best score first. All are checked before one runs. */
  async query(namespace: string, queries: readonly AnyQuery[], signal: AbortSignal): Promise<Found[]> {
    const meant = queries.some(({ id }) => id !== undefined)
      ? await this.queriesById(namespace, queries, signal)
      : queries.map((query): ByRecord => ({ query, row: undefined }));
    const preparing = sliced(this.prepared(meant.map(({ query }) => query)));
    const prepared = preparing instanceof Promise ? await preparing : preparing;
    const results: Found[] = [];
    let next = 0;
    const worker = async () => {
      for (let i = next++; i < prepared.length; i = next++) {
        const query = prepared[i] as PreparedQuery;
        const row = meant[i]?.row;
        results[i] = await translated(() =>
          this.parts.database.hold(signal, workOf(query), (connection) =>
            this.found(connection, namespace, query, row),
          ),
        );
      }
    };
    await Promise.all(Array.from({ length: Math.min(QUERIES_AT_ONCE, prepared.length) }, worker));
    return results;
  }

  /** @param row of the record that the query is about, which is no result of it */
  private async found(
    connection: Queryable,
    namespace: string,
    query: PreparedQuery,
    row: string | undefined,
  ): Promise<Found> {
    const { grouping } = query;
    if (grouping !== undefined)
      return groupedSearch(this.parts, this.searcher, connection, namespace, { ...query, grouping }, row);
    const wanted = { topK: query.topK + (row === undefined ? 0 : 1), without: undefined };
    const { hits, plan } = await this.searcher.search(connection, namespace, query, wanted);
    const others = row === undefined ? hits : hits.filter((hit) => hit.row !== row).slice(0, query.topK);
    return { hits: others, plan };
  }

  /** Queries by the vectors of records. @throws HttpError 404 for a record that is not there */
  private async queriesById(
    namespace: string,
    queries: readonly AnyQuery[],
    signal: AbortSignal,
  ): Promise<ByRecord[]> {
    const ids = queries.flatMap(({ id }) => id ?? []);
    const records = await this.reader.vectorsOf(namespace, ids, signal);
    return queries.map(({ id, ...query }, i) => {
      if (id === undefined) return { query, row: undefined };
      if (!isAbsent(query.vector) || !isAbsent(query.sparseVector))
        throw new HttpError('unprocessable', `body.${i}: expected an id or a vector, not both`);
      const record = records.get(id);
      if (record === undefined) throw new HttpError('not_found', `body.${i}.id: there is no such record`);
      return { query: { ...query, ...vectorsOf(record) }, row: record.row };
    });
  }

  private *prepared(queries: readonly GroupedQuery[]): Generator<void, PreparedQuery[]> {
    const prepared: PreparedQuery[] = [];
    for (const [i, query] of queries.entries()) {
      prepared.push(prepareQuery(this.parts, query, `body.${i}`));
      yield;
    }
    return prepared;
  }

  /** @throws HttpError 422 without an embedder */
  async upsertTexts(namespace: string, records: readonly TextRecord[], signal: AbortSignal): Promise<void> {
    const embedded = await this.embed(
      records.map(({ data }) => data),
      this.ownParts,
      'store',
      signal,
    );
    const complete: VectorRecord[] = records.map((record, i) => ({
      ...record,
      ...(embedded[i] as EmbeddedText),
    }));
    await this.writer.upsert(namespace, complete, signal);
  }

  /** The metadata of all that a filter or a prefix finds, or one record. @returns how many were found */
  async updateAll(namespace: string, body: AnyUpdate, signal: AbortSignal): Promise<number> {
    const { id, prefix: _, filter: __, ...change } = body;
    if (id === undefined) return this.bulkUpdater.update(namespace, body, signal);
    return Number(await this.update(namespace, { ...change, id }, signal));
  }

  /** New data alone makes new vectors where the index has an embedder, and is only stored where it has none. */
  private async update(namespace: string, body: UpdateBody, signal: AbortSignal): Promise<boolean> {
    const bare = (body.vector ?? body.sparseVector ?? undefined) === undefined;
    if (!bare || typeof body.data !== 'string' || !this.embedsAllParts)
      return this.updater.update(namespace, body, signal);
    const [embedded] = await this.embed([body.data], this.ownParts, 'store', signal);
    return this.updater.update(namespace, { ...body, ...embedded }, signal);
  }

  /** Queries with vectors instead of texts. @throws HttpError 422 without an embedder */
  async embedQueries<Q extends TextQuery>(
    queries: readonly Q[],
    signal: AbortSignal,
  ): Promise<(Omit<Q, 'data' | 'queryMode'> & VectorQuery)[]> {
    const vectors: EmbeddedText[] = new Array(queries.length);
    for (const mode of ['HYBRID', 'DENSE', 'SPARSE'] as const) {
      const places = queries.flatMap((query, i) => (query.queryMode === mode ? [i] : []));
      if (places.length === 0) continue;
      const texts = places.map((i) => (queries[i] as Q).data);
      const embedded = await this.embed(texts, this.partsOf(mode), 'ask', signal);
      places.forEach((place, i) => {
        vectors[place] = embedded[i] as EmbeddedText;
      });
    }
    return queries.map(({ data: _, queryMode: __, ...rest }, i) => ({
      ...rest,
      ...(vectors[i] as EmbeddedText),
    }));
  }

  private get ownParts(): Parts {
    const { dense, sparse } = this.parts.shape;
    return { dense: dense !== undefined, sparse };
  }

  private get embedsAllParts(): boolean {
    const { dense, sparse } = this.ownParts;
    return (!dense || this.embedders.dense !== undefined) && (!sparse || this.embedders.sparse !== undefined);
  }

  /** The mode means something to a hybrid index only. */
  private partsOf(mode: TextQuery['queryMode']): Parts {
    const { dense, sparse } = this.ownParts;
    if (!dense || !sparse) return { dense, sparse };
    return { dense: mode !== 'SPARSE', sparse: mode !== 'DENSE' };
  }

  private async embed(
    texts: readonly string[],
    parts: Parts,
    purpose: 'store' | 'ask',
    signal: AbortSignal,
  ): Promise<EmbeddedText[]> {
    const embedded = await embedTexts(this.embedders, texts, parts, purpose, signal);
    for (const { vector } of embedded) if (vector !== undefined) this.checkEmbedding(vector);
    return embedded;
  }

  /** Later, what the embedder did would be said of the client. @throws HttpError 502 for a vector that the index cannot hold */
  private checkEmbedding(vector: readonly unknown[]): void {
    try {
      packOne(vector, this.parts.rules.components, 'embedding');
    } catch (cause) {
      const { message } = toHttpError(cause);
      throw new HttpError('backend_error', `The embedder sent what this index cannot hold: ${message}`, {
        cause,
      });
    }
  }
}

/** A query, and the record that it began with. */
interface ByRecord {
  readonly query: GroupedQuery;
  readonly row: string | undefined;
}

/** As a request would bring them. */
function vectorsOf(record: RecordRow): Pick<VectorQuery, 'vector' | 'sparseVector'> {
  const { vector, sparse_indices: indices, sparse_values: values } = record;
  return {
    ...(typeof vector === 'string' ? { vector: JSON.parse(vector) } : {}),
    ...(typeof indices === 'string' && typeof values === 'string'
      ? { sparseVector: { indices: JSON.parse(indices), values: JSON.parse(values) } }
      : {}),
  };
}

/** A filter, `exact` and a sparse part are answered by a look at many records, the rest by the graph. */
function workOf({ exact, filter, terms, grouping }: PreparedQuery): WorkKind {
  return grouping !== undefined || exact || filter !== undefined || terms !== undefined ? 'scan' : 'query';
}
