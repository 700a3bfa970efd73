import { KickedTask } from '../../../lib/kicked-task.js';
import type { ReleaseRegistry } from '../../../lib/lifecycle.js';
import type { Logger } from '../../../lib/logger.js';
import type { Database, Queryable } from '../../../lib/postgres/postgres.js';
import type { IndexCounters } from '../metrics.js';
import type { IndexSettings } from '../settings.js';
import { EXACT_RECORDS } from '../statements/dense-search.js';
import { deferGraphText } from '../statements/namespace-statements.js';
import { buildsText } from '../statements/read-statements.js';
import type { IndexTables } from './index-tables.js';
import { leaveOutRepeated } from './repeated-vectors.js';

interface SpaceRow {
  readonly id: number;
  /** More than are compared one by one. */
  readonly large: boolean;
  readonly hnsw: boolean;
  /** The graph is to be built later. */
  readonly deferred: boolean;
  /** Others when records have come or gone. */
  readonly counters: string;
}

export interface HnswBuilderOptions {
  readonly database: Database;
  /** Those that are there now. */
  readonly tables: () => IndexTables;
  readonly settings: IndexSettings;
  readonly counters: IndexCounters;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
}

/** Another gateway is building: look again after so many ms. */
const BUSY_MS = 2_000;

/** Graphs that are built later: look again after so many ms. */
const DEFERRED_MS = 5_000;

/** An import without a new record for so many ms is over, and the graph is built. */
const IDLE_MS = 60_000;

/** At the end of the name of a graph over bits. */
const BITS = '_bq';

/** How far a build is, is asked so often, in ms. */
const PROGRESS_MS = 1_000;

/** pgvector 0.8.0 and 0.8.1 overflow a buffer in parallel builds (its changelog, 0.8.2). */
const PARALLEL_SINCE = 2;

/**
 * Gives each large namespace an HNSW index of its own (a partial one), in the background and without blocking writes, and
 * removes those that nothing needs any more. One graph for all namespaces would find less in each of them the more there
 * are of the others. What is to be done is read from the database each time, so a crash or several gateways do no harm.
 */
export class HnswBuilder {
  private readonly task: KickedTask;
  /** Namespaces whose graph is built later: what their counters were, and since when. */
  private readonly deferred = new Map<number, { readonly counters: string; readonly since: number }>();

  constructor(private readonly options: HnswBuilderOptions) {
    const { database, settings, log, lifecycle } = options;
    this.task = new KickedTask({
      name: `hnsw builder ${settings.name}`,
      work: (signal) => database.aside((connection) => this.reconcile(connection, signal), signal),
      log,
      lifecycle,
    });
  }

  /** Something may have to be built or removed. */
  kick(): void {
    this.task.kick();
  }

  /** @returns after how many ms to look again; 0: all is done */
  private async reconcile(connection: Queryable, signal: AbortSignal): Promise<number> {
    const { shape } = this.options.tables();
    // tried, not waited for: a session that waits holds a snapshot, and a concurrent build waits for all of those
    const lock = await connection.query<{ locked: boolean }>(
      'select pg_try_advisory_lock(hashtextextended($1, 0)) as locked',
      [`portico hnsw ${shape.records}`],
    );
    if (lock.rows[0]?.locked !== true) return BUSY_MS;
    const existing = await this.existing(connection);
    const spaces = await connection.query<SpaceRow>(
      `select id, record_count > ${EXACT_RECORDS} as large, hnsw, graph_deferred as deferred, next_row || ' ' || record_count as counters
       from ${shape.namespaces} where index_id = ${shape.indexId}`,
    );
    const { counters, settings } = this.options;
    const { enabled } = settings.hnsw;
    const isMissing = ({ id, large, deferred }: SpaceRow) =>
      enabled && large && !deferred && existing.get(this.nameOf(id)) !== true;
    counters.toBuild = spaces.rows.filter(isMissing).length;
    const kept = new Set<string>();
    let isDeferred = false;
    for (const space of spaces.rows) {
      const { id, large } = space;
      const name = this.nameOf(id);
      let { hnsw } = space;
      const isThere = existing.get(name) === true;
      const waits = enabled && (await this.isDeferred(connection, space));
      if (waits) isDeferred = true;
      const use = enabled && !waits && (large || isThere);
      if (use) kept.add(name);
      // the graph that is there serves another order: a query that meant to use it would compare all
      if (hnsw && !isThere && !hasAlike(existing, id, name)) {
        await this.mark(connection, id, false);
        hnsw = false;
      }
      if (use && !isThere) {
        await this.counted(() => this.build(connection, signal, id, name, existing.has(name)));
        counters.toBuild = Math.max(0, counters.toBuild - 1);
      }
      if (use !== hnsw) await this.mark(connection, id, use);
    }
    for (const name of existing.keys()) if (!kept.has(name)) await this.drop(connection, name);
    return isDeferred ? DEFERRED_MS : 0;
  }

  private async mark(connection: Queryable, id: number, hnsw: boolean): Promise<void> {
    const { namespaces } = this.options.tables().shape;
    await connection.query(`update ${namespaces} set hnsw = $2 where id = $1`, [id, hnsw]);
  }

  /** Whether the graph of a namespace is still left for later: until no record has come for a while. */
  private async isDeferred(connection: Queryable, { id, deferred, counters }: SpaceRow): Promise<boolean> {
    const known = this.deferred.get(id);
    if (!deferred) {
      this.deferred.delete(id);
      return false;
    }
    const now = performance.now();
    if (known?.counters !== counters) this.deferred.set(id, { counters, since: now });
    else if (now - known.since >= IDLE_MS) {
      await connection.query(deferGraphText(this.options.tables().shape), [id, false]);
      this.deferred.delete(id);
      return false;
    }
    return true;
  }

  /** HNSW indexes of the table: whether each is whole. One that is not was left by a build that broke off. */
  private async existing(connection: Queryable): Promise<Map<string, boolean>> {
    const { rows } = await connection.query<{ name: string; whole: boolean }>(
      `select c.relname as name, i.indisvalid as whole from pg_index i
       join pg_class c on c.oid = i.indexrelid join pg_am a on a.oid = c.relam
       where i.indrelid = $1::regclass and a.amname = 'hnsw'`,
      [this.options.tables().shape.records],
    );
    return new Map(rows.map(({ name, whole }) => [name, whole]));
  }

  /** Names its parameters, so that other ones in the configuration lead to a new index, and then the old one goes. */
  private nameOf(namespaceId: number): string {
    const { m, efConstruction, quantisation } = this.options.settings.hnsw;
    const bits = quantisation === 'binary' ? BITS : '';
    return `hnsw_${this.options.tables().shape.indexId}_v3_ns${namespaceId}_m${m}_ef${efConstruction}${bits}`;
  }

  private async counted(build: () => Promise<void>): Promise<void> {
    const { counters } = this.options;
    counters.building += 1;
    const watch = setInterval(() => void this.watchBuild(), PROGRESS_MS);
    try {
      await build();
      counters.builtGraphs += 1;
    } finally {
      clearInterval(watch);
      counters.building -= 1;
      counters.buildProgress = 0;
    }
  }

  private async watchBuild(): Promise<void> {
    const { counters, database } = this.options;
    try {
      const { rows } = await database.query<{ done: number | null }>(buildsText(this.options.tables().shape));
      if (counters.building > 0) counters.buildProgress = rows[0]?.done ?? 0;
    } catch {
      // the build goes on, however far it is
    }
  }

  private async build(
    connection: Queryable,
    signal: AbortSignal,
    namespaceId: number,
    name: string,
    remains: boolean,
  ): Promise<void> {
    const { settings, log } = this.options;
    const tables = this.options.tables();
    const { m, efConstruction, buildMemory } = settings.hnsw;
    const { records, dense } = tables.shape;
    if (dense === undefined) return;
    if (buildMemory !== null)
      await connection.query(`set maintenance_work_mem = '${Math.floor(buildMemory / 1024)}kB'`);
    const text = `create index concurrently "${name}" on ${records} using hnsw (${dense.indexed('vec')})
      with (m = ${m}, ef_construction = ${efConstruction}) where namespace_id = ${namespaceId} and not is_repeated`;
    if (remains) await this.drop(connection, name);
    await leaveOutRepeated(connection, tables.shape, dense, namespaceId);
    const startedAt = performance.now();
    try {
      if (!mayBuildInParallel(tables.pgvectorVersion))
        await connection.query('set max_parallel_maintenance_workers = 0');
      await connection.query(text);
    } catch (error) {
      if (signal.aborted) throw error;
      // workers share memory that a container may not have (64 MB by default in Docker)
      log.warn({ err: error, name }, 'hnsw: the build failed, once more without parallel workers');
      await this.drop(connection, name);
      await connection.query('set max_parallel_maintenance_workers = 0');
      await connection.query(text);
    }
    // by statistics that do not know the namespace yet it has one record, and the planner would not use its graph
    await connection.query(`analyze ${records} (namespace_id)`);
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    log.info({ index: settings.name, name, seconds }, 'hnsw: built');
  }

  private async drop(connection: Queryable, name: string): Promise<void> {
    const schema = this.options.tables().shape.records.replace(/\.[^.]*$/, '');
    await connection.query(`drop index concurrently if exists ${schema}."${name}"`);
  }
}

/** Whether the namespace has a whole graph over the same: vectors, or bits. */
function hasAlike(existing: ReadonlyMap<string, boolean>, id: number, name: string): boolean {
  return [...existing].some(
    ([other, whole]) => whole && other.includes(`_ns${id}_`) && other.endsWith(BITS) === name.endsWith(BITS),
  );
}

function mayBuildInParallel(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  return major > 0 || minor > 8 || (minor === 8 && patch >= PARALLEL_SINCE);
}
