import {
  type AttemptRequest,
  type Ending,
  type Entry,
  type OpenAttempt,
  type Place,
  type PlacesOptions,
  type PlacesStats,
  type QueuedAttempt,
  rejectionReason,
} from './attempts.js';
import { type DestinationView, KnownDestinations, newShare, type Share } from './known-destinations.js';
import { Recalls } from './recalls.js';
import { ReturnTimes } from './return-times.js';
import { hasRoom, WAITING_BYTES } from './room.js';

/** A place at a destination that still answers is worth waiting for so long, in ms: its queue moves. */
const WAIT_MS = 250;
/** How often attempts are looked at that wait for their answer, in ms. */
const TICK_MS = 100;

/**
 * Shares the attempts under way out among destinations (scheme, host and port) and flow-control keys, so that those which
 * hang do not hold up the others, however many they are.
 * An attempt that waits for its answer gives its active place to the next message and takes one of the waiting places, of
 * which there are more; `hasRoom` says how both are shared out. One that never answers has its circuit opened, and costs a
 * probe now and then.
 */
export class DestinationPlaces {
  private readonly destinations: KnownDestinations<QueuedAttempt>;
  private readonly returns = new ReturnTimes();
  private readonly recalls: Recalls;
  private readonly keys = new Map<string, Share>();
  /** Attempts with an active place, the oldest first. */
  private readonly attempts = new Set<OpenAttempt>();
  private readonly unclosed = new Set<Place>();
  private suspects = 0;
  private waiting = 0;
  private waitingBytes = 0;
  private queued = 0;
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;
  private readonly counts = { opened: 0, rejected: 0, turnedAway: { share: 0, circuit: 0 } };

  constructor(private readonly options: PlacesOptions) {
    const { circuitFailures: failures, circuitOpenMs: openMs, recall } = options;
    this.recalls = new Recalls(recall);
    this.destinations = new KnownDestinations({ failures, openMs }, (destination) => {
      this.unclosed.delete(destination);
      this.returns.forget(destination);
      this.recalls.forget(destination);
    });
  }

  enter(request: AttemptRequest): Entry | Promise<Entry> {
    const destination = this.destinations.at(new URL(request.url).origin);
    const key = this.keyOf(request);
    this.recalls.drop(destination, request.ticket.id);
    if (destination.circuit.state !== 'closed') return this.enterUnclosed(request, destination, key);
    if (this.hasRoom(destination, key)) return this.begin(request, destination, key, false);
    const { movedAt, slow } = destination;
    const moves = slow === false && this.options.now() - movedAt <= WAIT_MS;
    // those that wait hold active places
    if (moves && this.queued < this.options.active / 8) return this.queue(request, destination);
    return this.turnAway(request, destination, 'share');
  }

  /** Destinations with attempts under way or a circuit that is not closed, at most `most`. */
  list(most: number): DestinationView[] {
    return this.destinations.list(most, this.options.now());
  }

  stats(): PlacesStats {
    const halfOpen = [...this.unclosed].filter(({ circuit }) => circuit.state === 'half-open').length;
    return { ...this.counts, waiting: this.waiting, open: this.unclosed.size - halfOpen, halfOpen };
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  private keyOf({ flowKey }: AttemptRequest): Share | undefined {
    return flowKey === undefined ? undefined : (this.keys.get(flowKey) ?? newShare(flowKey));
  }

  private enterUnclosed(request: AttemptRequest, destination: Place, key: Share | undefined): Entry {
    const { circuit } = destination;
    const now = this.options.now();
    if (now >= circuit.nextProbeAt && this.attempts.size < this.options.active) {
      circuit.probeBegins(now);
      return this.begin(request, destination, key, true);
    }
    const heldMs = Math.min(request.overdueMs, now - (circuit.openSince ?? now));
    if (heldMs < request.timeoutMs)
      return this.turnAway(request, destination, 'circuit', circuit.nextProbeAt);
    this.counts.rejected += 1;
    return { kind: 'rejected', reason: rejectionReason(destination, heldMs) };
  }

  private hasRoom(destination: Place, key: Share | undefined): boolean {
    const { options, suspects, waiting, attempts } = this;
    return hasRoom(options, { active: attempts.size, suspects, waiting }, destination, key, options.now());
  }

  private begin(request: AttemptRequest, destination: Place, key: Share | undefined, probe: boolean): Entry {
    const startedAt = this.options.now();
    const suspect = destination.isSuspect;
    const attempt: OpenAttempt = { request, destination, key, startedAt, probe, suspect, waiting: false };
    destination.begins(startedAt);
    if (key !== undefined) {
      key.active += 1;
      this.keys.set(key.name, key);
    }
    if (suspect) this.suspects += 1;
    this.attempts.add(attempt);
    if (this.timer === undefined) this.wake();
    return { kind: 'place', leave: (ending) => this.end(attempt, ending) };
  }

  private end(attempt: OpenAttempt, ending: Ending): void {
    const { destination, key, request } = attempt;
    if (attempt.waiting) {
      this.waiting -= 1;
      this.waitingBytes -= request.bytes;
      destination.waiting -= 1;
      if (key !== undefined) key.waiting -= 1;
    } else this.leaveActive(attempt);
    if (key !== undefined && key.active + key.waiting === 0) this.keys.delete(key.name);
    if (attempt.probe) destination.circuit.probeEnded();
    if (ending !== 'interrupted') this.learn(attempt, ending);
    this.serveQueue(destination);
  }

  private leaveActive(attempt: OpenAttempt): void {
    this.attempts.delete(attempt);
    attempt.destination.active -= 1;
    if (attempt.key !== undefined) attempt.key.active -= 1;
    if (attempt.suspect) this.suspects -= 1;
  }

  private learn({ destination, startedAt }: OpenAttempt, ending: Ending): void {
    const now = this.options.now();
    const waited = now - startedAt >= this.options.slowAfterMs;
    const wasSilent = destination.isSilent(now);
    destination.ends(ending === 'answered', now - startedAt, waited, now);
    if (ending === 'answered') {
      this.returns.heard(destination, wasSilent);
      if (wasSilent) this.recalls.answers(destination);
      if (destination.circuit.answered()) this.unclosed.delete(destination);
    } else if (waited && destination.circuit.unanswered(now)) {
      this.counts.opened += 1;
      this.unclosed.add(destination);
    }
  }

  private queue(request: AttemptRequest, destination: Place): Promise<Entry> {
    return new Promise((resolve) => {
      const answer = (entry: Entry) => {
        clearTimeout(timer);
        this.queued -= 1;
        resolve(entry);
      };
      const waiter: QueuedAttempt = { request, answer };
      const timer = setTimeout(() => {
        destination.queue.splice(destination.queue.indexOf(waiter), 1);
        answer(this.turnAway(request, destination, 'share'));
      }, WAIT_MS);
      this.queued += 1;
      destination.queue.push(waiter);
    });
  }

  private serveQueue(destination: Place): void {
    for (;;) {
      const [next] = destination.queue;
      if (next === undefined) return;
      const key = this.keyOf(next.request);
      if (!this.hasRoom(destination, key)) return;
      destination.queue.shift();
      next.answer(this.begin(next.request, destination, key, false));
    }
  }

  private turnAway(
    { ticket }: AttemptRequest,
    destination: Place,
    reason: 'share' | 'circuit',
    notBefore = 0,
  ): Entry {
    this.counts.turnedAway[reason] += 1;
    destination.turnedAway += 1;
    const now = this.options.now();
    const awayMs = this.returns.awayMs(destination, now, notBefore);
    this.recalls.keep(destination, ticket, awayMs, now);
    if (this.timer === undefined) this.wake();
    return { kind: 'away', awayMs };
  }

  private wake(): void {
    if (!this.stopped) this.timer = setTimeout(() => this.look(), TICK_MS);
  }

  private look(): void {
    const now = this.options.now();
    for (const attempt of this.attempts) {
      if (now - attempt.startedAt < this.options.slowAfterMs) break;
      this.turnWaiting(attempt);
    }
    this.returns.prune(now);
    this.recalls.tick(now);
    this.timer = undefined;
    if (this.attempts.size > 0 || !this.returns.isIdle || !this.recalls.isIdle) this.wake();
  }

  /** Where all waiting places are taken it keeps its active one, among those of the suspects. */
  private turnWaiting(attempt: OpenAttempt): void {
    const { destination, key, request } = attempt;
    destination.slow = true;
    if (!attempt.suspect) {
      attempt.suspect = true;
      this.suspects += 1;
    }
    if (this.waiting >= this.options.waiting || this.waitingBytes + request.bytes > WAITING_BYTES) return;
    this.leaveActive(attempt);
    attempt.waiting = true;
    this.waiting += 1;
    this.waitingBytes += request.bytes;
    destination.waiting += 1;
    if (key !== undefined) key.waiting += 1;
    request.onWaiting();
  }
}
