import { Circuit, type CircuitState } from './circuit.js';

/** A place at a destination that still answers is worth waiting for so long, in ms: its queue moves. */
const WAIT_MS = 250;
/** How often attempts are looked at that wait for their answer, in ms. */
const TICK_MS = 100;
/** A message that found no place comes again after this at the earliest, and after that at the latest, in ms. */
const SHORTEST_AWAY_MS = 250;
const LONGEST_AWAY_MS = 600_000;
/** Between two messages that come again, in ms: each costs two statements, and they must not eat up the gateway. */
const RETURN_EVERY_MS = 10;
/**
 * Of the waiting places that are free, the part that one destination may fill which answers, one which does not, and one
 * flow-control key.
 */
const ANSWERING_PART = 1 / 8;
const SILENT_PART = 1 / 64;
const KEY_PART = 1 / 4;
/** A destination is silent when no answer has come for so long, in ms, and for so many times its usual answer's. */
const SILENT_MS = 1_000;
const SILENT_LATENCIES = 3;
/** How much of the usual time to an answer the newest one makes. */
const NEWEST_WEIGHT = 0.2;
/** Bodies that are kept while their attempts wait, in bytes. */
const WAITING_BYTES = 64 * 1024 * 1024;
/** Destinations that are remembered while nothing goes to them. */
const MOST_REMEMBERED = 10_000;

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
  /** Milliseconds on any clock that does not jump. */
  readonly now: () => number;
}

/** Who asks for a place. */
export interface Visitor {
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
  | { readonly kind: 'in vain'; readonly reason: string };

/** What the API shows of a destination. Times are milliseconds from now, negative ones ago. */
export interface DestinationView {
  readonly destination: string;
  readonly circuit: CircuitState;
  /** Attempts in a row that waited in vain. */
  readonly failures: number;
  readonly active: number;
  readonly waiting: number;
  /** Turned away since the destination last answered. */
  readonly turnedAway: number;
  readonly openedInMs: number | undefined;
  readonly probeInMs: number | undefined;
}

/** What the metrics show. */
export interface PlacesTally {
  readonly waiting: number;
  readonly open: number;
  readonly halfOpen: number;
  readonly opened: number;
  readonly turnedAway: Readonly<Record<'share' | 'circuit', number>>;
  readonly inVain: number;
}

/** Attempts under way that count together. */
interface Share {
  readonly name: string;
  active: number;
  waiting: number;
}

interface Destination extends Share {
  readonly circuit: Circuit;
  /** Whether the last attempt waited or had no answer; `undefined` before the first has ended. */
  slow: boolean | undefined;
  /** When an attempt last ended. */
  movedAt: number;
  /** When the last answer came, or later the first attempt began of those that are under way. */
  heardAt: number;
  /** Usual time to an answer, in ms; `undefined` before the first. */
  latency: number | undefined;
  turnedAway: number;
  /** When the last message that was turned away comes again. */
  returnAt: number;
  readonly queue: Waiter[];
}

interface Visit {
  readonly visitor: Visitor;
  readonly destination: Destination;
  readonly key: Share | undefined;
  readonly startedAt: number;
  readonly probe: boolean;
  /** Counted among the active ones that may turn out to hang. */
  suspect: boolean;
  waiting: boolean;
}

interface Waiter {
  readonly visitor: Visitor;
  readonly answer: (entry: Entry) => void;
}

/**
 * Shares the attempts under way out among destinations (scheme, host and port) and flow-control keys, so that those which
 * hang do not hold up the others, however many they are.
 *
 * An attempt that waits for its answer gives its active place to the next message and takes one of the waiting places,
 * of which there are more. Of the waiting places that are free one destination may fill an eighth while it answers, and a
 * 64th while it is silent: so some are left for whoever comes next (dynamic thresholds, as switches share out their
 * buffers), and 250 that hang leave some of 2,000. Destinations that hung or have never answered may use half of the active places together: the other half is
 * theirs who answer. One that never answers has its circuit opened, and costs a probe now and then.
 */
export class DestinationPlaces {
  private readonly destinations = new Map<string, Destination>();
  private readonly keys = new Map<string, Share>();
  /** Attempts with an active place, the oldest first. */
  private readonly visits = new Set<Visit>();
  /** Destinations to which messages come again. */
  private readonly crowded = new Set<Destination>();
  private readonly unclosed = new Set<Destination>();
  private suspects = 0;
  private waiting = 0;
  private waitingBytes = 0;
  private queued = 0;
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;
  private readonly counts = { opened: 0, inVain: 0, turnedAway: { share: 0, circuit: 0 } };

  constructor(private readonly options: PlacesOptions) {}

  enter(visitor: Visitor): Entry | Promise<Entry> {
    const destination = this.destinationAt(new URL(visitor.url).origin);
    const key = this.keyOf(visitor);
    if (destination.circuit.state !== 'closed') return this.enterUnclosed(visitor, destination, key);
    if (this.hasRoom(destination, key)) return this.begin(visitor, destination, key, false);
    const { movedAt, slow } = destination;
    const moves = slow === false && this.options.now() - movedAt <= WAIT_MS;
    // those that wait hold active places
    if (moves && this.queued < this.options.active / 8) return this.queue(visitor, destination);
    return this.turnAway(destination, 'share');
  }

  /** Destinations with attempts under way or a circuit that is not closed, at most `most`. */
  list(most: number): DestinationView[] {
    const now = this.options.now();
    const views: DestinationView[] = [];
    for (const destination of this.destinations.values()) {
      const { name, circuit, active, waiting, turnedAway } = destination;
      if (active + waiting === 0 && circuit.state === 'closed') continue;
      if (views.length === most) break;
      const { state, failures, openSince } = circuit;
      views.push({
        destination: name,
        circuit: state,
        failures,
        active,
        waiting,
        turnedAway,
        openedInMs: openSince === undefined ? undefined : openSince - now,
        probeInMs: openSince === undefined ? undefined : Math.max(0, circuit.nextProbeAt - now),
      });
    }
    return views;
  }

  tally(): PlacesTally {
    const halfOpen = [...this.unclosed].filter(({ circuit }) => circuit.state === 'half-open').length;
    return { ...this.counts, waiting: this.waiting, open: this.unclosed.size - halfOpen, halfOpen };
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  private destinationAt(name: string): Destination {
    const known = this.destinations.get(name);
    if (known !== undefined) return known;
    this.forgetSome();
    const { circuitFailures: failures, circuitOpenMs: openMs } = this.options;
    const destination: Destination = {
      name,
      active: 0,
      waiting: 0,
      circuit: new Circuit({ failures, openMs }),
      slow: undefined,
      movedAt: Number.NEGATIVE_INFINITY,
      heardAt: Number.NEGATIVE_INFINITY,
      latency: undefined,
      turnedAway: 0,
      returnAt: Number.NEGATIVE_INFINITY,
      queue: [],
    };
    this.destinations.set(name, destination);
    return destination;
  }

  /** Of the ones that are idle those that have been known longest; one with an open circuit is forgotten as well. */
  private forgetSome(): void {
    if (this.destinations.size < MOST_REMEMBERED) return;
    let looks = 0;
    for (const [name, destination] of this.destinations) {
      if (++looks > 16) return;
      this.destinations.delete(name);
      if (destination.active + destination.waiting + destination.queue.length > 0) {
        this.destinations.set(name, destination);
        continue;
      }
      this.unclosed.delete(destination);
      this.crowded.delete(destination);
      return;
    }
  }

  private keyOf({ flowKey }: Visitor): Share | undefined {
    if (flowKey === undefined) return undefined;
    return this.keys.get(flowKey) ?? { name: flowKey, active: 0, waiting: 0 };
  }

  private enterUnclosed(visitor: Visitor, destination: Destination, key: Share | undefined): Entry {
    const { circuit } = destination;
    const now = this.options.now();
    if (now >= circuit.nextProbeAt && this.visits.size < this.options.active) {
      circuit.probeBegins(now);
      return this.begin(visitor, destination, key, true);
    }
    const heldMs = Math.min(visitor.overdueMs, now - (circuit.openSince ?? now));
    if (heldMs < visitor.timeoutMs) return this.turnAway(destination, 'circuit', circuit.nextProbeAt);
    this.counts.inVain += 1;
    const reason = `not attempted: the last ${circuit.failures} attempts at ${destination.name} had no answer, and its circuit has been open for ${Math.round(heldMs / 1_000)} s`;
    return { kind: 'in vain', reason };
  }

  private hasRoom(destination: Destination, key: Share | undefined): boolean {
    const { active, waiting, perDestination } = this.options;
    const free = active - this.visits.size;
    const under = destination.active + destination.waiting;
    if (under >= perDestination || destination.active >= Math.max(1, free)) return false;
    if (key !== undefined && key.active >= Math.max(1, free)) return false;
    if (!isSuspect(destination)) return true;
    const suspectsFree = Math.floor(active / 2) - this.suspects;
    if (suspectsFree < 1 && this.suspects > 0) return false;
    if (destination.active >= Math.max(1, suspectsFree)) return false;
    const room = waiting - this.waiting;
    if (under >= Math.max(1, room * (this.isSilent(destination) ? SILENT_PART : ANSWERING_PART)))
      return false;
    return key === undefined || key.active + key.waiting < Math.max(1, room * KEY_PART);
  }

  private isSilent({ latency, heardAt }: Destination): boolean {
    if (latency === undefined) return true;
    return this.options.now() - heardAt > Math.max(SILENT_MS, SILENT_LATENCIES * latency);
  }

  private begin(visitor: Visitor, destination: Destination, key: Share | undefined, probe: boolean): Entry {
    const startedAt = this.options.now();
    const suspect = isSuspect(destination);
    const visit: Visit = { visitor, destination, key, startedAt, probe, suspect, waiting: false };
    if (destination.active + destination.waiting === 0) destination.heardAt = startedAt;
    destination.active += 1;
    if (key !== undefined) {
      key.active += 1;
      this.keys.set(key.name, key);
    }
    if (suspect) this.suspects += 1;
    this.visits.add(visit);
    if (this.timer === undefined) this.wake();
    return { kind: 'place', leave: (ending) => this.end(visit, ending) };
  }

  private end(visit: Visit, ending: Ending): void {
    const { destination, key, visitor } = visit;
    if (visit.waiting) {
      this.waiting -= 1;
      this.waitingBytes -= visitor.bytes;
      destination.waiting -= 1;
      if (key !== undefined) key.waiting -= 1;
    } else this.leaveActive(visit);
    if (key !== undefined && key.active + key.waiting === 0) this.keys.delete(key.name);
    if (visit.probe) destination.circuit.probeEnded();
    if (ending !== 'interrupted') this.learn(visit, ending);
    this.serveQueue(destination);
  }

  private leaveActive(visit: Visit): void {
    this.visits.delete(visit);
    visit.destination.active -= 1;
    if (visit.key !== undefined) visit.key.active -= 1;
    if (visit.suspect) this.suspects -= 1;
  }

  private learn({ destination, startedAt }: Visit, ending: Ending): void {
    const now = this.options.now();
    const tookMs = now - startedAt;
    const waited = tookMs >= this.options.slowAfterMs;
    destination.movedAt = now;
    destination.slow = waited || ending === 'failed';
    if (ending === 'answered') {
      const { latency = tookMs } = destination;
      destination.latency = latency + (tookMs - latency) * NEWEST_WEIGHT;
      destination.heardAt = now;
      destination.turnedAway = 0;
      destination.returnAt = Number.NEGATIVE_INFINITY;
      if (destination.circuit.answered()) this.unclosed.delete(destination);
    } else if (waited && destination.circuit.unanswered(now)) {
      this.counts.opened += 1;
      this.unclosed.add(destination);
    }
  }

  private queue(visitor: Visitor, destination: Destination): Promise<Entry> {
    return new Promise((resolve) => {
      const answer = (entry: Entry) => {
        clearTimeout(timer);
        this.queued -= 1;
        resolve(entry);
      };
      const waiter: Waiter = { visitor, answer };
      const timer = setTimeout(() => {
        destination.queue.splice(destination.queue.indexOf(waiter), 1);
        answer(this.turnAway(destination, 'share'));
      }, WAIT_MS);
      this.queued += 1;
      destination.queue.push(waiter);
    });
  }

  private serveQueue(destination: Destination): void {
    for (;;) {
      const [next] = destination.queue;
      if (next === undefined) return;
      const key = this.keyOf(next.visitor);
      if (!this.hasRoom(destination, key)) return;
      destination.queue.shift();
      next.answer(this.begin(next.visitor, destination, key, false));
    }
  }

  /** Those who come again do so one after the other, the same number of each destination. */
  private turnAway(destination: Destination, reason: 'share' | 'circuit', notBefore = 0): Entry {
    this.counts.turnedAway[reason] += 1;
    destination.turnedAway += 1;
    this.crowded.add(destination);
    const now = this.options.now();
    const spacing = RETURN_EVERY_MS * this.crowded.size;
    destination.returnAt = Math.max(destination.returnAt + spacing, now + SHORTEST_AWAY_MS, notBefore);
    if (this.timer === undefined) this.wake();
    return { kind: 'away', awayMs: Math.min(LONGEST_AWAY_MS, destination.returnAt - now) };
  }

  private wake(): void {
    if (this.stopped) return;
    this.timer = setTimeout(() => this.look(), TICK_MS);
  }

  private look(): void {
    const now = this.options.now();
    for (const visit of this.visits) {
      if (now - visit.startedAt < this.options.slowAfterMs) break;
      this.turnWaiting(visit);
    }
    for (const destination of this.crowded) if (destination.returnAt < now) this.crowded.delete(destination);
    this.timer = undefined;
    if (this.visits.size + this.crowded.size > 0) this.wake();
  }

  /** Where all waiting places are taken it keeps its active one, among those of the suspects. */
  private turnWaiting(visit: Visit): void {
    const { destination, key, visitor } = visit;
    destination.slow = true;
    if (!visit.suspect) {
      visit.suspect = true;
      this.suspects += 1;
    }
    if (this.waiting >= this.options.waiting || this.waitingBytes + visitor.bytes > WAITING_BYTES) return;
    this.leaveActive(visit);
    visit.waiting = true;
    this.waiting += 1;
    this.waitingBytes += visitor.bytes;
    destination.waiting += 1;
    if (key !== undefined) key.waiting += 1;
    visitor.onWaiting();
  }
}

/** It may hang: it did lately, or has never answered. */
function isSuspect({ slow, waiting }: Destination): boolean {
  return slow !== false || waiting > 0;
}
