import { setTimeout as sleep } from 'node:timers/promises';
import { KickedTask } from '../../../lib/kicked-task.js';
import type { ReleaseRegistry } from '../../../lib/lifecycle.js';
import type { Logger } from '../../../lib/logger.js';
import type { Database, Queryable } from '../../../lib/postgres/postgres.js';
import type { IndexSettings } from '../settings.js';
import { anyDroppedText, sweepText } from '../statements/namespace-statements.js';
import type { IndexTables } from './index-tables.js';

export interface NamespaceSweeperOptions {
  readonly database: Database;
  /** Those that are there now. */
  readonly tables: () => IndexTables;
  readonly settings: IndexSettings;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
}

/** Another gateway is at it: look again after so many ms. */
const BUSY_MS = 2_000;

/** Rest after each step, in ms, so that requests are not held up. */
const REST_MS = 20;

/**
 * Deletes what emptied and deleted namespaces have left behind, a few thousand rows at a time: such a namespace has gone at once,
 * whatever it held. What is left to do stands in the database, so a crash or several gateways do no harm.
 */
export class NamespaceSweeper {
  private readonly task: KickedTask;

  constructor(private readonly options: NamespaceSweeperOptions) {
    const { database, settings, log, lifecycle } = options;
    this.task = new KickedTask({
      name: `vector sweeper ${settings.name}`,
      work: async (signal) => {
        // a connection beside the pool only where there is something to do: there may be many indexes
        if ((await database.query(anyDroppedText(this.options.tables().shape))).rowCount === 0) return 0;
        return database.aside((connection) => this.sweep(connection, signal), signal);
      },
      log,
      lifecycle,
    });
  }

  /** There may be something to delete. */
  kick(): void {
    this.task.kick();
  }

  private async sweep(connection: Queryable, signal: AbortSignal): Promise<number> {
    // by the index, however small the namespace is beside the others
    await connection.query('set enable_seqscan = off');
    const text = sweepText(this.options.tables().shape);
    for (;;) {
      const { rows } = await connection.query<{ mine: boolean; left: boolean }>(text);
      const { mine = false, left = false } = rows[0] ?? {};
      if (!mine) return left ? BUSY_MS : 0;
      await sleep(REST_MS, undefined, { signal });
    }
  }
}
