import { HttpError } from '../../http/errors.js';
import type { Principal } from '../../http/route.js';
import { keepTrying, type Progress } from '../../lib/keep-trying.js';
import type { ReleaseRegistry } from '../../lib/lifecycle.js';
import type { Logger } from '../../lib/logger.js';
import { type Database, migrate, UnusableSchema } from '../../lib/postgres/postgres.js';
import { endedWithin } from '../../lib/within.js';
import type { Embedders } from './embedder/embedder.js';
import { openaiEmbedder } from './embedder/openai-embedder.js';
import { wordEmbedder } from './embedder/word-embedder.js';
import { translateError } from './errors.js';
import { type IndexParts, indexParts } from './index-parts.js';
import type { IndexCounters } from './metrics.js';
import { GraphHints } from './search/graph-hints.js';
import type { IndexSettings } from './settings.js';
import type { SharedConnections } from './shared-connections.js';
import { HnswBuilder } from './tables/hnsw-builder.js';
import { ensureIndexTables, type IndexTables } from './tables/index-tables.js';
import { migrations } from './tables/migrations.js';
import { NamespaceSweeper } from './tables/namespace-sweeper.js';
import { VectorIndex } from './vector-index.js';

/** Oldest pgvector without a known way to damage an HNSW index (pgvector's changelog). */
const SOUND_PGVECTOR = [0, 8, 4];

/** How long the first requests wait for the tables before they are told 503, in ms. */
const START_WAIT_MS = 1_500;

export interface PreparedIndexOptions {
  readonly database: Database;
  readonly connections: SharedConnections;
  readonly schema: string;
  readonly settings: IndexSettings;
  /** An administrator has made it at run time. */
  readonly isManaged?: boolean;
  readonly counters: IndexCounters;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
}

/** What all tokens of an index share. */
interface Prepared {
  readonly parts: Omit<IndexParts, 'database' | 'token'>;
  readonly hints: GraphHints;
  readonly onChange: () => void;
}

/** An index that may not be usable yet: its tables are looked for, or made, in the background until that succeeds. */
export class PreparedIndex {
  readonly settings: IndexSettings;
  private prepared: Prepared | undefined;
  /** What looks after the tables, and which these are: others when they were made again. */
  private kick: (() => void) | undefined;
  private tables: IndexTables | undefined;
  /** One for each token, by its name. */
  private readonly indexes = new Map<string, VectorIndex>();
  private readonly progress: Progress;
  private readonly embedders: Embedders;

  constructor(private readonly options: PreparedIndexOptions) {
    const { settings, log, lifecycle } = options;
    this.settings = settings;
    this.embedders = embeddersOf(settings, lifecycle);
    this.progress = keepTrying(() => this.prepare(), {
      name: `vector index ${settings.name}`,
      log,
      lifecycle,
    });
  }

  /** @throws HttpError 503 while the index cannot be used; why is the operator's, in its cause */
  async ready(principal: Principal): Promise<VectorIndex> {
    return this.indexes.get(principal.name) ?? this.indexOf(principal.name, await this.whenPrepared());
  }

  /** Resolves when Postgres answers and the index can be used. */
  async check(): Promise<void> {
    if (!this.progress.done && this.progress.error !== undefined) throw this.progress.error;
    await this.options.database.check();
    await this.whenPrepared();
  }

  /** To be called when a statement met a table that is not there. */
  remake(): void {
    this.progress.redo();
  }

  private async whenPrepared(): Promise<Prepared> {
    if (this.prepared === undefined && this.progress.error === undefined) await this.firstTry();
    if (this.prepared !== undefined) return this.prepared;
    const { error: cause } = this.progress;
    throw new HttpError('backend_unavailable', 'The index is not available.', { cause });
  }

  private indexOf(token: string, { parts, hints, onChange }: Prepared): VectorIndex {
    const { connections, settings } = this.options;
    const database = connections.of(`${settings.name} ${token}`);
    const index = new VectorIndex({ ...parts, database, token }, hints, this.embedders, onChange);
    this.indexes.set(token, index);
    return index;
  }

  private firstTry(): Promise<void> {
    return endedWithin(START_WAIT_MS, this.progress.success);
  }

  /** @returns what asks it to look */
  private upkeep(): () => void {
    const tables = () => this.tables as IndexTables;
    const tasks = [
      ...(tables().shape.dense === undefined ? [] : [new HnswBuilder({ ...this.options, tables })]),
      new NamespaceSweeper({ ...this.options, tables }),
    ];
    return () => {
      for (const task of tasks) task.kick();
    };
  }

  private async prepare(): Promise<void> {
    const { database, schema, settings, isManaged, counters, log } = this.options;
    try {
      await migrate(database, schema, migrations(schema));
      const tables = await ensureIndexTables(database, schema, settings, isManaged);
      if (isOlder(tables.pgvectorVersion, SOUND_PGVECTOR)) {
        log.warn(
          { version: tables.pgvectorVersion },
          `pgvector is older than ${SOUND_PGVECTOR.join('.')}, which fixes faults of HNSW indexes`,
        );
      }
      this.tables = tables;
      this.kick ??= this.upkeep();
      this.indexes.clear();
      this.prepared = {
        parts: indexParts(tables, settings, counters),
        hints: new GraphHints(),
        onChange: this.kick,
      };
      // what an earlier gateway did not get to, and other parameters in the configuration
      this.kick();
    } catch (error) {
      if (error instanceof UnusableSchema) throw new HttpError('backend_unavailable', error.message);
      throw translateError(error);
    }
  }
}

function embeddersOf({ embedding, dimension }: IndexSettings, lifecycle: ReleaseRegistry): Embedders {
  const { url, sparse } = embedding;
  return {
    dense: url === null ? undefined : openaiEmbedder({ ...embedding, url }, dimension, lifecycle),
    sparse: sparse ? wordEmbedder : undefined,
  };
}

function isOlder(version: string, than: readonly number[]): boolean {
  const parts = version.split('.').map(Number);
  const at = than.findIndex((part, i) => (parts[i] ?? 0) !== part);
  return at >= 0 && (parts[at] ?? 0) < (than[at] as number);
}
