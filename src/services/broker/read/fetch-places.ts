import { HttpError } from '../../../http/errors.js';
import { FairSlots, type LaneDoor, NoSlot } from '../../../lib/fair-slots.js';
import type { LightWork } from '../../../lib/light-work.js';

/**
 * What all fetches of a cluster read from Kafka at once, in bytes. As JSON it may be three times as much, and each is begun
 * as its answer comes: 2,000 requests for 1 MiB each held 500 MB and the loop for 200 ms.
 */
const AT_WORK_BYTES = 16 * 1024 * 1024;
const FEWEST = 2;
const MOST = 16;
/** Longest wait for a place, in ms: what a request may take beyond the wait that it asked for, less one look at Kafka. */
const WAIT_MS = 6_000;
/** Requests of one user that wait at once: about so many looks at 1 MiB end in that time, and all that do not are told at once. */
const MAX_WAITING = 200;

/** The user whose request it is, and the broker that it asks first. */
export interface FetchTenant {
  readonly user: string;
  readonly node: number;
}

/** Places in which Kafka is read for a request, shared by all users of a cluster: a broker that hangs takes few of them. */
export class FetchPlaces {
  private readonly slots: FairSlots;
  /** As many as users and brokers. */
  private readonly doors = new Map<string, LaneDoor>();

  /** @param maxBytes what one request reads */
  constructor(maxBytes: number, light?: LightWork) {
    const capacity = Math.max(FEWEST, Math.min(MOST, Math.floor(AT_WORK_BYTES / maxBytes)));
    this.slots = new FairSlots({
      capacity,
      waitMs: WAIT_MS,
      maxWaiting: MAX_WAITING,
      ...(light === undefined ? {} : { light }),
    });
  }

  /** Does `work` in a place. @throws HttpError 503 when none comes free; what `work` throws, or `signal` aborts with */
  async use<T>({ user, node }: FetchTenant, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const name = `${node} ${user}`;
    let door = this.doors.get(name);
    if (door === undefined) {
      door = this.slots.lane(user);
      this.doors.set(name, door);
    }
    try {
      return await door.use(work, signal);
    } catch (error) {
      throw error instanceof NoSlot ? new HttpError('overloaded', MANY_FETCHES, { cause: error }) : error;
    }
  }
}

const MANY_FETCHES =
  'Too many fetches of this user are being read or wait for it; nothing was read. Try again.';
