import type { Ticket } from '../message/message.js';
import type { Destination } from './known-destinations.js';

/** Messages of one destination, and of all, that are remembered while they stay away; the others come in their time. */
const MOST_OF_ONE = 500;
const MOST = 50_000;
/** A message that comes again that soon need not be called, in ms. */
const SOON_MS = 1_000;
/** Messages that are called to one destination between two ticks. */
const EACH_TICK = 64;

/**
 * Calls messages back that were sent away for long because their destination was silent, once it answers: while a hundred
 * others are silent too they come again a second apart, and 130 of a destination that was only slow to start waited for
 * two minutes. A message is called once: each call makes a ticket more, and a destination that answers now and then would
 * have its messages collect them.
 */
export class Recalls {
  private kept = 0;
  private readonly answering = new Set<Destination>();
  private readonly called = new Set<string>();

  constructor(private readonly call: (tickets: readonly Ticket[]) => void) {}

  get isIdle(): boolean {
    return this.answering.size === 0;
  }

  keep(destination: Destination, { id, attempt }: Ticket, awayMs: number, now: number): void {
    const { away } = destination;
    if (awayMs <= SOON_MS || this.called.has(id) || this.kept >= MOST || away.size >= MOST_OF_ONE) return;
    away.set(id, { attempt, at: now + awayMs });
    this.kept += 1;
  }

  /** To be called when a message has come again. */
  drop({ away }: Destination, id: string): void {
    if (away.delete(id)) this.kept -= 1;
  }

  /** To be called when a destination that was silent answers. */
  answers(destination: Destination): void {
    if (destination.away.size > 0) this.answering.add(destination);
  }

  /** To be called when a destination is no longer remembered. */
  forget(destination: Destination): void {
    this.answering.delete(destination);
    this.kept -= destination.away.size;
    destination.away.clear();
  }

  /** Calls some of each destination that answers. */
  tick(now: number): void {
    for (const destination of this.answering) {
      const { away } = destination;
      if (destination.isSilent(now)) this.answering.delete(destination);
      else this.call(this.take(destination, now));
      if (away.size === 0) this.answering.delete(destination);
    }
  }

  private take(destination: Destination, now: number): Ticket[] {
    const tickets: Ticket[] = [];
    for (const [id, { attempt, at }] of destination.away) {
      if (tickets.length === EACH_TICK) break;
      this.drop(destination, id);
      if (at - now <= SOON_MS) continue;
      tickets.push({ id, attempt });
      this.remember(id);
    }
    return tickets;
  }

  private remember(id: string): void {
    this.called.add(id);
    if (this.called.size <= MOST) return;
    const [oldest] = this.called;
    this.called.delete(oldest as string);
  }
}
