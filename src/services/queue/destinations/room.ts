import type { PlacesOptions } from './attempts.js';
import type { Destination, Share } from './known-destinations.js';

/**
 * Of the waiting places that are free, the part that one destination may fill which answers, one which does not (once an
 * eighth of them is taken, and before), and one flow-control key.
 */
const ANSWERING_PART = 1 / 8;
const SILENT_PART = 1 / 64;
const EARLY_SILENT_PART = 1 / 16;
const KEY_PART = 1 / 4;
/** How many times what is left of the suspects' active places one of them may have. */
const SUSPECT_TIMES = 3;
/** Bodies that are kept while their attempts wait, in bytes. */
export const WAITING_BYTES = 64 * 1024 * 1024;

/** What is taken of all places. */
export interface Taken {
  readonly active: number;
  /** Active ones of attempts that may turn out to hang. */
  readonly suspects: number;
  readonly waiting: number;
}

/**
 * Whether a destination, and a flow-control key where there is one, may have one more attempt under way.
 *
 * Of the waiting places that are free each may fill a part, so that some are left for whoever comes next (dynamic
 * thresholds, as switches share out their buffers): 150 that hang leave some of 2,000. Of the active places one may have
 * as many as it leaves, and those that hung or have never answered may have half together: the other half is theirs who
 * answer.
 */
export function hasRoom(
  { active, waiting, perDestination }: PlacesOptions,
  taken: Taken,
  destination: Destination,
  key: Share | undefined,
  now: number,
): boolean {
  const free = Math.max(1, active - taken.active);
  if (destination.under >= perDestination || destination.active >= free) return false;
  if (key !== undefined && key.active >= free) return false;
  if (!destination.isSuspect) return true;
  const suspectsFree = Math.floor(active / 2) - taken.suspects;
  if (suspectsFree < 1 && taken.suspects > 0) return false;
  if (destination.active >= Math.max(1, SUSPECT_TIMES * suspectsFree)) return false;
  const room = waiting - taken.waiting;
  const silentPart = taken.waiting < waiting / 8 ? EARLY_SILENT_PART : SILENT_PART;
  const part = destination.isSilent(now) ? silentPart : ANSWERING_PART;
  if (destination.under >= Math.max(1, room * part)) return false;
  return key === undefined || key.active + key.waiting < Math.max(1, room * KEY_PART);
}
