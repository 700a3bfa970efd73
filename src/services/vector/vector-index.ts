import type { Database } from '../../lib/postgres.js';
import { sliced } from '../../lib/slices.js';
import { type EmbeddedText, type Embedders, embedTexts, type Parts } from './embedder/embedder.js';
import { type IndexParts, indexParts } from './index-parts.js';
import { Namespaces } from './records/namespaces.js';
import { RecordReader } from './records/record-reader.js';
import { RecordUpdater } from './records/record-updater.js';
import { RecordWriter } from './records/record-writer.js';
import type { TextQuery, VectorQuery } from './schemas/queries.js';
import type { TextRecord, UpdateBody, VectorRecord } from './schemas/records.js';
import { type PreparedQuery, prepareQuery } from './search/prepared-query.js';
import { ResumableQueries } from './search/resumable-queries.js';
import { Searcher } from './search/searcher.js';
import type { IndexSettings } from './settings.js';
import type { IndexTables } from './tables/index-tables.js';

/** How many queries of one request run at once: each takes a connection of the pool that all requests share. */
const QUERIES_AT_ONCE = 4;

/** One index whose tables are there. */
export class VectorIndex {
  readonly writer: RecordWriter;
  readonly reader: RecordReader;
  readonly namespaces: Namespaces;
  readonly resumable: ResumableQueries;
  private readonly updater: RecordUpdater;
  private readonly searcher: Searcher;
  private readonly parts: IndexParts;

  /** @param onChange namespaces have grown or gone, so that HNSW indexes may have to be built or removed */
  constructor(
    database: Database,
    tables: IndexTables,
    settings: IndexSettings,
    private readonly embedders: Embedders,
    onChange: () => void,
  ) {
    this.parts = indexParts(database, tables, settings);
    this.writer = new RecordWriter(this.parts, onChange);
    this.updater = new RecordUpdater(this.parts);
    this.reader = new RecordReader(this.parts, {
      dense: embedders.dense?.model ?? '',
      sparse: embedders.sparse?.model ?? '',
    });
    this.namespaces = new Namespaces(this.parts, onChange);
    this.searcher = new Searcher(this.parts);
    this.resumable = new ResumableQueries(this.parts, this.searcher);
  }

  get limits(): { readonly maxLineBytes: number } {
    return { maxLineBytes: this.parts.settings.bodyLimit };
  }

  /** The results of all queries, each the JSON text of an array, best score first. All are checked before one runs. */
  async query(namespace: string, queries: readonly VectorQuery[], signal: AbortSignal): Promise<string[]> {
    const preparing = sliced(this.prepared(queries));
    const prepared = preparing instanceof Promise ? await preparing : preparing;
    const connection = this.parts.database.within(signal);
    const results: string[] = [];
    let next = 0;
    const worker = async () => {
      for (let i = next++; i < prepared.length; i = next++) {
        const hits = await this.searcher.search(connection, namespace, prepared[i] as PreparedQuery);
        results[i] = `[${hits.map(({ text }) => text).join(',')}]`;
      }
    };
    await Promise.all(Array.from({ length: Math.min(QUERIES_AT_ONCE, prepared.length) }, worker));
    return results;
  }

  private *prepared(queries: readonly VectorQuery[]): Generator<void, PreparedQuery[]> {
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

  /** New data alone makes new vectors where the index has an embedder, and is only stored where it has none. */
  async update(namespace: string, body: UpdateBody, signal: AbortSignal): Promise<boolean> {
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

  private embed(
    texts: readonly string[],
    parts: Parts,
    purpose: 'store' | 'ask',
    signal: AbortSignal,
  ): Promise<EmbeddedText[]> {
    return embedTexts(this.embedders, texts, parts, purpose, signal);
  }
}
