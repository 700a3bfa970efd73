import { HttpError } from '../../../http/errors.js';
import { arrayOf } from '../../../lib/json/joined-texts.js';
import { mapped } from '../../../lib/slices.js';
import { translated } from '../errors.js';
import { fieldPath } from '../filter/field-path.js';
import { valuesJsonpath } from '../filter/filter-jsonpath.js';
import type { IndexParts } from '../index-parts.js';
import type { CountBody, FacetsBody, FetchBody, RangeBody } from '../schemas/reads.js';
import type { IndexInfo } from '../schemas/replies.js';
import type { WorkKind } from '../shared-connections.js';
import { EXACT_RECORDS } from '../statements/dense-search.js';
import {
  type Included,
  includedBy,
  includedKey,
  Parameters,
  type RecordRow,
  type Statement,
} from '../statements/index-shape.js';
import {
  buildsText,
  countsText,
  countText,
  facetsText,
  fetchText,
  randomText,
  rangeText,
  sizeText,
} from '../statements/read-statements.js';
import { recordText } from './record-text.js';
import { selectionOf } from './selection.js';

/** Records of a page for whom does not say how many. */
const DEFAULT_PAGE = 100;

/** Records of a page in an export; a page is what is held in memory at once. */
const EXPORT_PAGE = 200;

interface Page {
  readonly rows: readonly RecordRow[];
  /** Row of the record after the page; empty at the end. */
  readonly next: string;
}

/** Reads records by id and in the order of their insertion. Results are JSON text, where it may be long in pieces. */
export class RecordReader {
  constructor(
    private readonly parts: IndexParts,
    /** Names of the embedder's models, for `info`. */
    private readonly models: { readonly dense: string; readonly sparse: string },
  ) {}

  /** In the order asked for, null where there is none; with a prefix in the order of their insertion. */
  async fetch(namespace: string, body: FetchBody, signal: AbortSignal): Promise<string[]> {
    const { maxPage } = this.parts.settings;
    const included = includedBy(body);
    const { ids, prefix, filter } = body;
    if (ids === undefined) {
      const whole = { cursor: '0', limit: maxPage, prefix, filter };
      const make = ({ rows }: Page) => textsOf(rows);
      return arrayOf(await this.page(namespace, whole, included, signal, make));
    }
    if (ids.length > maxPage) throw tooMany('body.ids', ids.length, maxPage);
    const make = (byId: ReadonlyMap<string, RecordRow>) =>
      mapped(ids, (id) => {
        const row = byId.get(id);
        return row === undefined ? 'null' : recordText(row);
      });
    return arrayOf(await this.byId(namespace, ids, included, signal, make));
  }

  async range(namespace: string, body: RangeBody, signal: AbortSignal): Promise<string[]> {
    const { maxPage } = this.parts.settings;
    const { cursor, prefix, filter } = body;
    const limit = body.limit ?? Math.min(DEFAULT_PAGE, maxPage);
    if (limit > maxPage) throw tooMany('body.limit', limit, maxPage);
    const page = { cursor, limit, prefix, filter };
    return this.page(namespace, page, includedBy(body), signal, async ({ rows, next }) => [
      `{"nextCursor":"${next}","vectors":`,
      ...arrayOf(await textsOf(rows)),
      '}',
    ]);
  }

  /** Every record from the cursor on, a line each, a page after the other. */
  async *lines(namespace: string, body: RangeBody, signal: AbortSignal): AsyncGenerator<string> {
    const included = includedBy(body);
    let left = body.limit ?? Number.POSITIVE_INFINITY;
    let { cursor } = body;
    const { prefix, filter } = body;
    while (left > 0) {
      const limit = Math.min(left, EXPORT_PAGE);
      const page = { cursor, limit, prefix, filter };
      const { texts, next } = await this.page(namespace, page, included, signal, async (found) => ({
        texts: await textsOf(found.rows),
        next: found.next,
      }));
      if (texts.length > 0) yield `${texts.join('\n')}\n`;
      if (next === '') return;
      left -= texts.length;
      cursor = next;
    }
  }

  /** How many records there are, or of them with such an id or such metadata. */
  async count(namespace: string, body: CountBody, signal: AbortSignal): Promise<number> {
    const parameters = new Parameters();
    parameters.add(namespace, 'text');
    const condition = selectionOf(body)?.(parameters);
    if (condition === undefined) {
      const { namespaces } = await this.info(signal);
      return namespaces[namespace]?.vectorCount ?? 0;
    }
    const text = countText(this.parts.shape, condition);
    const [row] = await this.rows<{ count: string }>({ text }, parameters.values, signal, 'scan');
    return Number(row?.count ?? 0);
  }

  /** The values of a field and how many records have them, the most frequent first; as JSON. */
  async facets(
    namespace: string,
    { field, limit, ...selection }: FacetsBody,
    signal: AbortSignal,
  ): Promise<string[]> {
    const parameters = new Parameters();
    parameters.add(namespace, 'text');
    parameters.add(valuesJsonpath(fieldPath(field)), 'jsonpath');
    parameters.add(limit, 'int');
    const text = facetsText(this.parts.shape, selectionOf(selection)?.(parameters) ?? 'true');
    type Facet = { value: string; count: string };
    const rows = await this.rows<Facet>({ text }, parameters.values, signal, 'scan');
    return arrayOf(rows.map(({ value, count }) => `{"value":${value},"count":${count}}`));
  }

  /** The vectors of records, by their ids. */
  vectorsOf(
    namespace: string,
    ids: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, RecordRow>> {
    return this.byId(namespace, ids, { vectors: true, metadata: false, data: false }, signal, (byId) => byId);
  }

  /** One record, each as likely as the others, or null. */
  async random(namespace: string, signal: AbortSignal): Promise<string> {
    const statement = this.parts.cache.get('random', () => randomText(this.parts.shape));
    const row = (await this.rows<RecordRow>(statement, [namespace], signal))[0];
    return row === undefined ? 'null' : recordText(row);
  }

  /** @param explain with what is known of graphs: clients compare what they are told without it */
  async info(signal: AbortSignal, explain = false): Promise<IndexInfo> {
    const { shape, cache, settings } = this.parts;
    const [spaces, sizes, builds] = await Promise.all([
      this.rows<CountsRow>(
        cache.get('counts', () => countsText(shape)),
        [],
        signal,
      ),
      this.rows<{ bytes: string }>(
        cache.get('size', () => sizeText(shape)),
        [],
        signal,
      ),
      explain ? this.rows<{ id: string; done: number | null }>({ text: buildsText(shape) }, [], signal) : [],
    ]);
    const wantsGraphs = shape.dense !== undefined && settings.hnsw.enabled;
    const progress = new Map(builds.map(({ id, done }) => [id, done]));
    const perSpace = spaces.map((space) => {
      const counts = { vectorCount: Number(space.record_count), pendingVectorCount: 0 };
      if (!explain) return [space.name, counts] as const;
      const done = progress.get(String(space.id)) ?? null;
      const about = { graph: graphOf(space, wantsGraphs), ...(done === null ? {} : { progress: done }) };
      return [space.name, { ...counts, ...about }] as const;
    });
    const dense =
      shape.dense === undefined
        ? ({ dimension: 0, similarityFunction: '' } as const)
        : { dimension: settings.dimension, similarityFunction: settings.similarity };
    return {
      vectorCount: perSpace.reduce((sum, [, { vectorCount }]) => sum + vectorCount, 0),
      // an upsert is answered when its records can be found: none is ever accepted and not ready
      pendingVectorCount: 0,
      indexSize: Number(sizes[0]?.bytes ?? 0),
      ...dense,
      indexType: settings.type,
      ...(shape.dense === undefined ? {} : { denseIndex: { ...dense, embeddingModel: this.models.dense } }),
      ...(shape.sparse ? { sparseIndex: { embeddingModel: this.models.sparse } } : {}),
      namespaces: Object.fromEntries(perSpace),
    };
  }

  async namespaces(signal: AbortSignal): Promise<string[]> {
    const statement = this.parts.cache.get('counts', () => countsText(this.parts.shape));
    return (await this.rows<{ name: string }>(statement, [], signal)).map(({ name }) => name);
  }

  /** Reads one record more than asked for: it is the beginning of the next page. */
  private page<T>(
    namespace: string,
    { cursor, limit, ...selection }: CountBody & { cursor: string; limit: number },
    included: Included,
    signal: AbortSignal,
    make: (page: Page) => T | Promise<T>,
  ): Promise<T> {
    const { shape, cache } = this.parts;
    const parameters = new Parameters();
    parameters.add(namespace, 'text');
    parameters.add(cursor, 'bigint');
    parameters.add(limit + 1, 'int');
    // which index helps depends on the very prefix and filter: planned each time
    const condition = selectionOf(selection)?.(parameters);
    const statement =
      condition === undefined
        ? cache.get(`range ${includedKey(included)}`, () => rangeText(shape, included))
        : { text: rangeText(shape, included, condition) };
    const kind = selection.filter === undefined ? 'read' : 'scan';
    return this.made<RecordRow, T>(statement, parameters.values, signal, kind, (rows) =>
      make({ rows: rows.slice(0, limit), next: rows[limit]?.row ?? '' }),
    );
  }

  private byId<T>(
    namespace: string,
    ids: readonly string[],
    included: Included,
    signal: AbortSignal,
    make: (byId: ReadonlyMap<string, RecordRow>) => T | Promise<T>,
  ): Promise<T> {
    const statement = this.parts.cache.get(`fetch ${includedKey(included)}`, () =>
      fetchText(this.parts.shape, included),
    );
    return this.made<RecordRow, T>(statement, [namespace, ids], signal, 'read', (rows) =>
      make(new Map(rows.map((row) => [row.id, row]))),
    );
  }

  private rows<Row>(
    statement: Statement,
    values: readonly unknown[],
    signal: AbortSignal,
    kind: WorkKind = 'read',
  ): Promise<readonly Row[]> {
    return this.made<Row, readonly Row[]>(statement, values, signal, kind, (rows) => rows);
  }

  /** What `make` makes of the rows; no other rows come in their place before it is done. */
  private made<Row, T>(
    { text, name }: Statement,
    values: readonly unknown[],
    signal: AbortSignal,
    kind: WorkKind,
    make: (rows: readonly Row[]) => T | Promise<T>,
  ): Promise<T> {
    return translated(() =>
      this.parts.database.hold(signal, kind, async (connection) =>
        make((await connection.query<Row>(text, values, name)).rows),
      ),
    );
  }
}

const textsOf = (rows: readonly RecordRow[]) => mapped(rows, (row) => recordText(row));

interface CountsRow {
  readonly id: number;
  readonly name: string;
  readonly record_count: string;
  readonly hnsw: boolean;
  readonly graph_deferred: boolean;
}

function graphOf(
  { record_count, hnsw, graph_deferred }: CountsRow,
  wantsGraphs: boolean,
): 'ready' | 'building' | 'deferred' | 'none' {
  if (hnsw) return 'ready';
  if (!wantsGraphs) return 'none';
  if (graph_deferred) return 'deferred';
  return Number(record_count) > EXACT_RECORDS ? 'building' : 'none';
}

function tooMany(place: string, given: number, limit: number): HttpError {
  return new HttpError('unprocessable', `${place}: ${given}, more than the limit of ${limit}`);
}
