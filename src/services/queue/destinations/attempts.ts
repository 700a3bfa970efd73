import type { Ticket } from '../message/message.js';
import type { Destination, Share, Waiter } from './known-destinations.js';

export interface PlacesOptions {
  /** Attempts at once that are being made or have waited for less than `slowAfterMs`. */
  readonly active: number;
  /** Attempts at once that have waited for longer. */
  readonly waiting: number;
  /** Attempts to one destination at once, of both kinds. */
  readonly perDestination: number;
  /** From then on an attempt counts as waiting, in ms, and gives its active place back. */
  readonly slowAfterMs: number;
  /** See `CircuitOptions`. */
  readonly circuitFailures: number;
  readonly circuitOpenMs: number;
  /** Has messages come again that were turned away, before their time. */
  readonly recall: (tickets: readonly Ticket[]) => void;
  /** Milliseconds on any clock that does not jump. */
  readonly now: () => number;
}

/** Who asks for a place. */
export interface AttemptRequest {
  readonly ticket: Ticket;
  readonly url: string;
  readonly flowKey: string | undefined;
  /** Of the body. */
  readonly bytes: number;
  /** Since the attempt was due. */
  readonly overdueMs: number;
  /** Longest time that the attempt may take, in ms. */
  readonly timeoutMs: number;
  /** Called once if the attempt gives its active place back. */
  readonly onWaiting: () => void;
}

/** How an attempt ended: with a response, without one, or cut short by this gateway. */
export type Ending = 'answered' | 'failed' | 'interrupted';

export type Entry =
  /** A place was had; `leave` gives it back. */
  | { readonly kind: 'place'; readonly leave: (ending: Ending) => void }
  /** The message is to stay away for `awayMs`. */
  | { readonly kind: 'away'; readonly awayMs: number }
  /** The circuit has been open for as long as the attempt might have waited. */
  | { readonly kind: 'rejected'; readonly reason: string };

/** What the metrics show. */
export interface PlacesStats {
  readonly waiting: number;
  readonly open: number;
  readonly halfOpen: number;
  readonly opened: number;
  readonly turnedAway: Readonly<Record<'share' | 'circuit', number>>;
  readonly rejected: number;
}

/** Who waits for a place at one destination. */
export type QueuedAttempt = Waiter<AttemptRequest, Entry>;

export type Place = Destination<QueuedAttempt>;

/** An attempt under way. */
export interface OpenAttempt {
  readonly request: AttemptRequest;
  readonly destination: Place;
  readonly key: Share | undefined;
  readonly startedAt: number;
  readonly probe: boolean;
  /** Counted among the active ones that may turn out to hang. */
  suspect: boolean;
  waiting: boolean;
}

export function rejectionReason({ name, circuit }: Place, heldMs: number): string {
  const openFor = Math.round(heldMs / 1_000);
  return `not attempted: the last ${circuit.failures} attempts at ${name} had no answer, and its circuit has been open for ${openFor} s`;
}
