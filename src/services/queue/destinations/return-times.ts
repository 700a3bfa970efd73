import type { Destination } from './known-destinations.js';

/** A message that found no place comes again after this at the earliest, and after that at the latest, in ms. */
const SHORTEST_AWAY_MS = 250;
const LONGEST_AWAY_MS = 600_000;
/**
 * Between two messages that come again to destinations that are silent, in ms: each costs two statements, and they must
 * not eat up the gateway.
 */
const RETURN_EVERY_MS = 10;

/**
 * When messages that found no place come again: one after the other, as fast as their destination answers, or the same
 * number of each destination that is silent.
 */
export class ReturnTimes {
  /** Silent destinations to which messages come again. */
  private readonly crowded = new Set<Destination>();

  get isIdle(): boolean {
    return this.crowded.size === 0;
  }

  /** How long a message is to stay away, in ms. @param notBefore on the clock of `now` */
  awayMs(destination: Destination, now: number, notBefore: number): number {
    const spacing = this.spacingOf(destination, now);
    destination.returnAt = Math.max(destination.returnAt + spacing, now + SHORTEST_AWAY_MS, notBefore);
    return Math.min(LONGEST_AWAY_MS, destination.returnAt - now);
  }

  /** To be called when a destination answers, with whether it was silent before. */
  heard(destination: Destination, wasSilent: boolean): void {
    this.crowded.delete(destination);
    // who is turned away from now on need not wait for those who were before
    if (wasSilent) destination.returnAt = Number.NEGATIVE_INFINITY;
  }

  forget(destination: Destination): void {
    this.crowded.delete(destination);
  }

  /** Leaves out those to which all have come again. */
  prune(now: number): void {
    for (const destination of this.crowded) if (destination.returnAt < now) this.crowded.delete(destination);
  }

  private spacingOf(destination: Destination, now: number): number {
    if (destination.circuit.state === 'closed' && !destination.isSilent(now))
      return Math.max(1, destination.answersEveryMs);
    this.crowded.add(destination);
    return RETURN_EVERY_MS * this.crowded.size;
  }
}
