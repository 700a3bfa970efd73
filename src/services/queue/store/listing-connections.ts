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
  private readonly door: LaneDoor;

  constructor(
    private readonly database: Database,
    poolSize: number,
  ) {
    const capacity = Math.max(1, Math.floor(poolSize / PART));
    this.door = new FairSlots({ capacity, waitMs: WAIT_MS, maxWaiting: MAX_WAITING }).lane('listings');
  }

  /** @throws NoSlot, and what the database throws */
  readonly query: Queryable['query'] = (...statement) =>
    this.door.use(() => this.database.query(...statement));
}
