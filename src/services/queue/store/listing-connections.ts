import { FairSlots, type LaneDoor } from '../../../lib/fair-slots.js';
import type { LightWork } from '../../../lib/light-work.js';
import type { Database, Queryable } from '../../../lib/postgres/postgres.js';

/** Listings use no more than one of so many connections. */
const PART = 4;
/**
 * Pages that are read or made into a reply at once: with bodies of 4 MiB each takes seven times as much. One may search for 3 s,
 * so there are more of them than connections. One kind of work gets three of four places.
 */
const PAGES = 4;
/** Longest wait for a connection or a place, in ms: below what a request may take. */
const WAIT_MS = 5_000;
const MAX_WAITING = 1_000;

/**
 * The database for what looks at many rows: a step of it takes up to 80 ms, a publish 1. As many listings at once as there
 * are connections would leave deliveries and publishes none.
 */
export class ListingConnections implements Queryable {
  private readonly door: LaneDoor;
  private readonly pages: LaneDoor;

  constructor(
    private readonly database: Database,
    poolSize: number,
    light: LightWork,
  ) {
    const limits = { waitMs: WAIT_MS, maxWaiting: MAX_WAITING, light };
    this.door = new FairSlots({ ...limits, capacity: Math.max(1, Math.floor(poolSize / PART)) }).lane(
      'listings',
    );
    this.pages = new FairSlots({ ...limits, capacity: PAGES }).lane('pages');
  }

  /** @throws NoSlot, and what the database throws */
  readonly query: Queryable['query'] = (...statement) =>
    this.door.use(() => this.database.query(...statement));

  /** Reads a page with bodies and makes a reply of it. @throws NoSlot, and what `work` throws */
  page<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.pages.use(work, signal);
  }
}
