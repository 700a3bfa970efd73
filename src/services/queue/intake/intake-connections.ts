import { HttpError } from '../../../http/errors.js';
import { FairSlots, type LaneDoor, NoSlot } from '../../../lib/fair-slots.js';
import type { LightWork } from '../../../lib/light-work.js';
import type { Database, Queryable } from '../../../lib/postgres/postgres.js';

/** Publishes with transactions of their own use no more than one of so many connections. */
const PART = 2;
/** Longest wait for one, in ms: below what a request may take. */
const WAIT_MS = 5_000;
const MAX_WAITING = 1_000;

/**
 * The database for publishes that need a transaction: batches, keys, queues. One of 100 messages takes 10 ms, those of one
 * flow key wait for each other, and with all connections theirs a lone message waited for half a second.
 */
export class IntakeConnections {
  /** A message alone does not wait behind batches. */
  private readonly doors: Readonly<Record<'single' | 'batch', LaneDoor>>;

  constructor(
    private readonly database: Database,
    poolSize: number,
    private readonly light: LightWork,
  ) {
    const capacity = Math.max(1, Math.floor(poolSize / PART));
    const slots = new FairSlots({ capacity, waitMs: WAIT_MS, maxWaiting: MAX_WAITING, light });
    this.doors = { single: slots.lane('single'), batch: slots.lane('batch') };
  }

  /** A message alone without key or queue comes, which takes no place: batches and listings make room for it. */
  lightCame(): void {
    this.light.came(performance.now());
  }

  /** @param messages how many it stores @throws HttpError 503 when no connection comes free; what `work` and the database throw */
  async transaction<T>(messages: number, work: (connection: Queryable) => Promise<T>): Promise<T> {
    const door = messages === 1 ? this.doors.single : this.doors.batch;
    try {
      return await door.use(() => this.database.transaction(work));
    } catch (error) {
      throw error instanceof NoSlot ? new HttpError('overloaded', MANY_PUBLISHES, { cause: error }) : error;
    }
  }
}

const MANY_PUBLISHES =
  'Too many batches, or messages with keys and queues, are being stored at the same time; nothing was done. Try again.';
