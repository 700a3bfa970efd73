import { FairSlots, type LaneDoor } from '../../../lib/fair-slots.js';
import type { Database, Queryable } from '../../../lib/postgres/postgres.js';

/** Listings use no more than one of so many connections. */
const PART = 4;
/** Longest wait for one, in ms: below what a request may take. */
const WAIT_MS = 5_000;
const MAX_WAITING = 1_000;

/**
 * The database for what looks at many rows: a step of it takes up to 80 ms, a publish 1. As many listings at once as there
 * are connections would leave deliveries and publishes none.
 */
export class ListingConnections implements Queryable {
  private readonly slots: FairSlots;
  private readonly door: LaneDoor;

  constructor(
    private readonly database: Database,
    poolSize: number,
  ) {
    const capacity = Math.max(1, Math.floor(poolSize / PART));
    this.slots = new FairSlots({ capacity, waitMs: WAIT_MS, maxWaiting: MAX_WAITING });
    this.door = this.slots.lane('listings');
  }

  /** @throws NoSlot, and what the database throws */
  readonly query: Queryable['query'] = async (...statement) => {
    if (!this.door.tryEnter()) await this.door.enter(UNENDED);
    const enteredAt = this.slots.now();
    try {
      return await this.database.query(...statement);
    } finally {
      this.door.leave(enteredAt);
    }
  };
}

const UNENDED = new AbortController().signal;
