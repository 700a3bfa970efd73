import type { ClaimedMessage } from './message.js';

/** What became of a claim. */
export type Claim =
  | { readonly kind: 'claimed'; readonly message: ClaimedMessage }
  /** Another attempt of the message is due instead, after `waitMs`. */
  | { readonly kind: 'stale'; readonly attempt: number; readonly waitMs: number }
  /** The attempt is not due yet, or somebody works on it: worth asking again after `waitMs`. */
  | { readonly kind: 'busy'; readonly waitMs: number }
  /** It is due, but its flow-control key has not let it in. */
  | { readonly kind: 'keyed'; readonly key: string }
  /** Its retries are used up, and its dead letter is still to be written. */
  | { readonly kind: 'failing' }
  /** Finished, cancelled, unknown, or held until a ticket is made for it. */
  | { readonly kind: 'over' };

/** What the store says of a message that could not be claimed. */
export interface Unclaimed {
  attempt: number;
  finished: boolean;
  failing: boolean;
  held: boolean;
  free: boolean;
  flow_key: string | null;
  wait_ms: number;
}

/** A claim that is given back, for a new one after so many ms. */
export type Postponement = readonly [message: ClaimedMessage, delayMs: number];
