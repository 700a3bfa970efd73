import { HttpError } from '../../../http/errors.js';
import type { Principal } from '../../../http/route.js';
import { keepTrying, type Progress } from '../../../lib/keep-trying.js';
import { KickedTask } from '../../../lib/kicked-task.js';
import { Lifecycle, type ReleaseRegistry } from '../../../lib/lifecycle.js';
import type { Logger } from '../../../lib/logger.js';
import { type Database, migrate } from '../../../lib/postgres/postgres.js';
import { endedWithin } from '../../../lib/within.js';
import { translated, translateError } from '../errors.js';
import { ADMINISTRATOR, IndexHolder, IndexTokens } from '../index-tokens.js';
import type { PreparedIndex } from '../prepared-index.js';
import type { AlterIndexBody, DescribedIndex, ListedIndex } from '../schemas/indexes.js';
import { type IndexSettings, type ManagedIndex, managedIndex, type VectorSettings } from '../settings.js';
import { migrations } from '../tables/migrations.js';
import { type CatalogRow, IndexCatalog, noSuchIndex } from './index-catalog.js';

/** What another gateway has made, changed or dropped is known within so many ms. */
const LOOK_MS = 500;

/** Pause between looks for tables that may go by now, in ms. */
const PURGE_PAUSE_MS = 1_000;

/** How long the first requests wait for the catalog before they are told 503, in ms. */
const START_WAIT_MS = 1_500;

export interface ManagedIndexesOptions {
  readonly database: Database;
  readonly schema: string;
  readonly managed: VectorSettings['managed'];
  readonly adminToken: string;
  /** Those of the configuration. */
  readonly declared: readonly PreparedIndex[];
  /** Begins to serve an index. */
  readonly open: (settings: IndexSettings, lifecycle: ReleaseRegistry) => PreparedIndex;
  /** Nothing is left of it here. */
  readonly forget: (name: string) => void;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
}

interface Entry {
  readonly row: CatalogRow;
  readonly index: PreparedIndex;
  readonly lifecycle: Lifecycle;
}

/** The indexes that administrators make, change and drop while gateways run. What there is stands in Postgres; each process looks. */
export class ManagedIndexes {
  private readonly entries = new Map<string, Entry>();
  private readonly catalog: IndexCatalog;
  private readonly tokens: IndexTokens;
  private readonly progress: Progress;
  private readonly purger: KickedTask;
  private readonly looker: KickedTask;
  /** Looks run one after the other: an older one must not undo a newer. */
  private looking: Promise<void> = Promise.resolve();
  private nextLook: Promise<void> | undefined;
  private isStopped = false;

  constructor(private readonly options: ManagedIndexesOptions) {
    const { database, schema, adminToken, log, lifecycle } = options;
    this.catalog = new IndexCatalog(database, schema);
    this.tokens = new IndexTokens(adminToken);
    lifecycle.onStop('managed vector indexes', () => this.stop());
    const common = { log, lifecycle };
    this.purger = new KickedTask({ name: 'purge of vector indexes', work: (s) => this.purge(s), ...common });
    this.looker = new KickedTask({
      name: 'look at vector indexes',
      work: async () => {
        await this.look();
        return LOOK_MS;
      },
      ...common,
    });
    this.progress = keepTrying(() => this.prepare(), { name: 'managed vector indexes', ...common });
  }

  /** The index at a path, for whoever asks. @throws HttpError 401, 404, 503 */
  async find(name: string, principal: Principal): Promise<PreparedIndex> {
    const known = this.entries.get(name);
    if (known !== undefined && isFor(known, principal)) return known.index;
    await this.whenPrepared();
    await this.look();
    const entry = this.entries.get(name);
    if (entry !== undefined && isFor(entry, principal)) return entry.index;
    if (principal === ADMINISTRATOR) throw noSuchIndex(name);
    throw new HttpError('unauthorized', undefined, {
      headers: { 'WWW-Authenticate': 'Bearer realm="portico"' },
    });
  }

  async create(index: ManagedIndex): Promise<DescribedIndex> {
    await this.whenPrepared();
    const { declared, managed } = this.options;
    if (declared.some(({ settings }) => settings.name === index.name))
      throw new HttpError('conflict', `The configuration declares an index ${index.name}.`);
    await translated(() => this.catalog.create(index, this.complete(index), managed.maxIndexes));
    return this.describe(index.name);
  }

  async alter(
    name: string,
    { rotateTokens = false, hnsw, ...rest }: AlterIndexBody,
  ): Promise<DescribedIndex> {
    await this.whenPrepared();
    const change = (settings: CatalogRow['settings']) => {
      const changed = { ...settings, ...rest, name, hnsw: { ...settings.hnsw, ...hnsw } };
      const { data, error } = managedIndex.safeParse(changed);
      if (data !== undefined) {
        const { name: _, ...kept } = data;
        return kept;
      }
      const [issue] = error.issues;
      throw new HttpError('invalid_request', `body.${issue?.path.join('.')}: ${issue?.message}`);
    };
    await translated(() => this.catalog.alter(name, change, rotateTokens));
    return this.describe(name);
  }

  async drop(name: string): Promise<void> {
    await this.whenPrepared();
    await translated(() => this.catalog.drop(name));
    await this.look();
  }

  /** With its tokens, for its administrator. @throws HttpError 404 */
  async describe(name: string): Promise<DescribedIndex> {
    await this.whenPrepared();
    await this.look();
    const entry = this.entries.get(name);
    if (entry === undefined) throw noSuchIndex(name);
    const { id, salt, settings } = entry.row;
    const { type: _, dimension: __, similarity: ___, storage: ____, ...changeable } = settings;
    const counts = await translated(() => this.catalog.counts());
    return {
      ...(await listed(entry.index, 'administrator', counts)),
      ...changeable,
      token: this.tokens.token(id, salt, 'full'),
      readOnlyToken: this.tokens.token(id, salt, 'read'),
    };
  }

  /** All indexes, those of the configuration first. */
  async list(): Promise<ListedIndex[]> {
    await this.whenPrepared();
    await this.look();
    const counts = await translated(() => this.catalog.counts());
    const managed = [...this.entries.values()].sort((a, b) => (a.row.name < b.row.name ? -1 : 1));
    return Promise.all([
      ...this.options.declared.map((index) => listed(index, 'configuration', counts)),
      ...managed.map(({ index }) => listed(index, 'administrator', counts)),
    ]);
  }

  /** Resolves when what there is is known and each can be used. */
  async check(): Promise<void> {
    if (!this.progress.done && this.progress.error !== undefined) throw this.progress.error;
    await this.options.database.check();
    await this.whenPrepared();
    for (const { index } of this.entries.values()) await index.check();
  }

  /** To be called when a statement met a table that is not there. */
  remake(): void {
    this.progress.redo();
    for (const { index } of this.entries.values()) index.remake();
  }

  private async prepare(): Promise<void> {
    const { database, schema } = this.options;
    try {
      await migrate(database, schema, migrations(schema));
      await this.look();
      this.looker.kick();
    } catch (error) {
      throw translateError(error);
    }
  }

  private async whenPrepared(): Promise<void> {
    if (!this.progress.done && this.progress.error === undefined)
      await endedWithin(START_WAIT_MS, this.progress.success);
    if (this.progress.done) return;
    throw new HttpError('backend_unavailable', 'The indexes are not known yet.', {
      cause: this.progress.error,
    });
  }

  /** Serves what there is now, as it is now. Whoever asks while a look waits for its turn shares it. */
  private look(): Promise<void> {
    this.nextLook ??= this.looking.then(async () => {
      this.nextLook = undefined;
      const { rows, leavings } = await translated(() => this.catalog.read());
      if (this.isStopped) return;
      if (leavings) this.purger.kick();
      this.follow(rows);
    });
    this.looking = this.nextLook.catch(() => undefined);
    return this.nextLook;
  }

  private follow(rows: readonly CatalogRow[]): void {
    const declared = new Set(this.options.declared.map(({ settings }) => settings.name));
    const wanted = new Map(rows.filter(({ name }) => !declared.has(name)).map((row) => [row.name, row]));
    for (const [name, entry] of this.entries) {
      const row = wanted.get(name);
      if (row !== undefined && isSame(row, entry.row)) continue;
      this.entries.delete(name);
      if (row === undefined) this.options.forget(name);
      void entry.lifecycle.stop();
    }
    for (const [name, row] of wanted) {
      if (this.entries.has(name)) continue;
      const lifecycle = new Lifecycle(this.options.log);
      const index = this.options.open(this.complete({ ...row.settings, name }), lifecycle);
      this.entries.set(name, { row, index, lifecycle });
    }
  }

  /** With what is the gateway's to say. */
  private complete({ countWords, ...index }: ManagedIndex): IndexSettings {
    const { path, bodyLimit, timeoutMs, idempotencyWindow } = this.options.managed;
    return {
      ...index,
      path: `${path === '/' ? '' : path}/${index.name}`,
      port: null,
      token: null,
      readOnlyToken: null,
      embedding: { url: null, apiKey: null, model: '', sparse: countWords, batchSize: 1, timeoutMs },
      bodyLimit,
      timeoutMs,
      idempotencyWindow,
    };
  }

  private purge(signal: AbortSignal): Promise<number> {
    return this.options.database.aside(async (connection) => {
      const isLeft = await this.catalog.purgeOne(connection);
      return isLeft ? PURGE_PAUSE_MS : 0;
    }, signal);
  }

  private async stop(): Promise<void> {
    this.isStopped = true;
    await this.looking;
    await Promise.all([...this.entries.values()].map(({ lifecycle }) => lifecycle.stop()));
  }
}

function isFor({ row }: Entry, principal: Principal): boolean {
  if (principal === ADMINISTRATOR) return true;
  return principal instanceof IndexHolder && principal.indexId === row.id && principal.salt === row.salt;
}

/** Postgres prints one jsonb always alike. */
function isSame(a: CatalogRow, b: CatalogRow): boolean {
  return a.id === b.id && a.salt === b.salt && JSON.stringify(a.settings) === JSON.stringify(b.settings);
}

async function listed(
  index: PreparedIndex,
  source: ListedIndex['source'],
  counts: ReadonlyMap<string, number>,
): Promise<ListedIndex> {
  const { name, path, type, dimension, similarity, storage } = index.settings;
  const reason = await index.check().then(
    () => undefined,
    (error: unknown) => reasonOf(error),
  );
  const isDense = type !== 'SPARSE';
  return {
    ...{ name, path, source, type, storage },
    dimension: isDense ? dimension : null,
    similarity: isDense ? similarity : null,
    vectorCount: counts.get(name) ?? 0,
    ...(reason === undefined ? { status: 'up' } : { status: 'down', reason }),
  };
}

/** Errors of preparing an index are worded for operators. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as { message: string; cause?: unknown };
  return cause instanceof HttpError ? cause.message : message;
}
