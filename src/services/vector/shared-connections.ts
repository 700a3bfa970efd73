import { FairSlots, type LaneDoor } from '../../lib/fair-slots.js';
import { type Database, isUnreachable, type Transactions } from '../../lib/postgres/postgres.js';
import type { VectorSettings } from './settings.js';

/** Quick and slow work is kept apart: what waits for one has not to wait for the other. */
const WORK_KINDS = ['read', 'query', 'scan', 'write', 'control'] as const;

/**
 * What a statement does: `read` by key or in order, `query` the nearest of all, `scan` compares or sorts many records (filters,
 * `exact`, sparse), `write` records, `control` whole namespaces.
 */
export type WorkKind = (typeof WORK_KINDS)[number];

/** The database for the requests of one token of one index. */
export interface TokenDatabase {
  /** @param signal see `Database.within` */
  within(signal: AbortSignal, kind: WorkKind): Transactions;
  /**
   * Keeps the place of one connection for all of `work`, what it makes of the rows included: without it rows of 4 MB came faster
   * than their text was made, and 600 MB of them waited for that.
   */
  hold<T>(signal: AbortSignal, kind: WorkKind, work: (connection: Transactions) => Promise<T>): Promise<T>;
}

/** Waits of one token at once, for each connection: what waits behind more would not be served in time. */
const WAITING_PER_CONNECTION = 100;

/** Shares the connections of the pool among all tokens of all indexes. */
export class SharedConnections {
  private readonly slots: FairSlots;

  constructor(
    private readonly database: Database,
    { poolSize, statementTimeoutMs }: Pick<VectorSettings['database'], 'poolSize' | 'statementTimeoutMs'>,
  ) {
    // one connection is left for the look at whether Postgres answers, whatever the others do
    const capacity = Math.max(1, poolSize - 1);
    this.slots = new FairSlots({
      capacity,
      waitMs: statementTimeoutMs,
      maxWaiting: WAITING_PER_CONNECTION * capacity,
    });
  }

  /** @param tenant names index and token */
  of(tenant: string): TokenDatabase {
    const doors = new Map(WORK_KINDS.map((kind) => [kind, this.slots.lane(tenant)]));
    return {
      within: (signal, kind) => {
        const transactions = this.database.within(signal);
        const door = doors.get(kind) as LaneDoor;
        return {
          query: (...statement) => this.through(door, signal, () => transactions.query(...statement)),
          transaction: (work) => this.through(door, signal, () => transactions.transaction(work)),
        };
      },
      hold: (signal, kind, work) =>
        this.through(doors.get(kind) as LaneDoor, signal, () => work(this.database.within(signal))),
    };
  }

  private through<T>(door: LaneDoor, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const told = async () => {
      try {
        return await work();
      } catch (error) {
        if (isUnreachable(error)) this.slots.refuse(error);
        throw error;
      }
    };
    return door.use(told, signal);
  }
}
