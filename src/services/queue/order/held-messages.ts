import type { Logger } from '../../../lib/logger.js';
import type { DueTicket, FlowControl, Ticket } from '../message/message.js';
import type { TicketSender } from '../rabbitmq/ticket-sender.js';
import { Coalescer } from './coalescer.js';
import type { FlowControls } from './flow-controls.js';
import type { OrderedQueues, ReturnedSlots } from './ordered-queues.js';
import { ReleasePlaces } from './release-places.js';

/** What messages wait for that were just stored. */
export interface Waiting {
  /** Names of ordered queues. */
  readonly queues: readonly string[];
  /** Flow control as the messages brought it, once for each key. */
  readonly flows: readonly FlowControl[];
}

/** What is to be known when messages under a key are let go. */
interface KeyChange {
  /** Limits that a message brought. */
  readonly flow?: FlowControl;
  /** Slots that attempts were admitted to and did not use. */
  readonly unused?: number;
  /** Nobody waits for it: others go first. */
  readonly canWait?: boolean;
}

export interface HeldMessagesOptions {
  readonly queues: OrderedQueues;
  readonly flows: FlowControls;
  readonly sender: TicketSender;
  readonly log: Logger;
  /** Transactions that let messages go at once and for which nobody waits. */
  readonly atOnce: number;
}

/** Lets held messages go when what they waited for is over: a place in their queue, room or a new period under their key. */
export class HeldMessages {
  private readonly timers = new Map<string, NodeJS.Timeout>();
  private readonly aborter = new AbortController();
  private repairing = false;
  private readonly places: ReleasePlaces;
  private readonly queues = new Coalescer<boolean>((earlier, later) => earlier && later);
  private readonly keys = new Coalescer<KeyChange>((earlier, later) => ({
    ...earlier,
    ...later,
    unused: (earlier.unused ?? 0) + (later.unused ?? 0),
    canWait: earlier.canWait === true && later.canWait === true,
  }));

  constructor(private readonly options: HeldMessagesOptions) {
    this.places = new ReleasePlaces(options.atOnce);
  }

  /** A ticket came whose message its flow-control key has not let in: it waits for its turn. */
  async hold(ticket: Ticket, key: string): Promise<void> {
    await this.options.flows.hold(ticket);
    await this.releaseKey(key);
  }

  /** To be called, and not waited for, when messages were stored that wait for their turn. */
  begin({ queues, flows }: Waiting): void {
    for (const name of queues) void this.releaseQueue(name, true);
    for (const flow of flows) void this.releaseKey(flow.key, { flow, canWait: true });
  }

  /** To be called, and not waited for, when messages that their key had let in were held with their queue. */
  releaseReturned(all: readonly ReturnedSlots[]): void {
    for (const { key, unused } of all) void this.releaseKey(key, { unused });
  }

  /** Publishes tickets of messages that were let go; the sweeper finds what is lost. */
  async send(tickets: readonly DueTicket[]): Promise<void> {
    await this.withFailuresLogged(() => this.options.sender.sendAll(tickets, this.aborter.signal));
  }

  /** To be called when an attempt under the key ended, whatever its outcome. What fails here the sweeper repairs. */
  releaseKey(key: string, change: KeyChange = {}): Promise<void> {
    const place = `key ${key}`;
    if (change.canWait !== true) this.places.expedite(place);
    return this.keys.run(key, change, async ({ flow, unused = 0, canWait = false }) => {
      await this.withFailuresLogged(async () => {
        const release = () => this.options.flows.release(key, flow, unused);
        const { tickets, roomInMs } = await this.places.use(place, !canWait, release);
        if (roomInMs !== undefined) this.wake(key, roomInMs);
        await this.options.sender.sendAll(tickets, this.aborter.signal);
      });
    });
  }

  /** To be called when a message of the queue, or its last callback, is over. */
  releaseQueue(name: string, canWait = false): Promise<void> {
    const place = `queue ${name}`;
    if (!canWait) this.places.expedite(place);
    return this.queues.run(name, canWait, (waits) =>
      this.withFailuresLogged(async () => {
        const tickets = await this.places.use(place, !waits, () => this.options.queues.release(name));
        await this.options.sender.sendAll(tickets, this.aborter.signal);
      }),
    );
  }

  /** What a crash left held although there is room. */
  async repair(): Promise<void> {
    if (this.repairing) return;
    this.repairing = true;
    try {
      for await (const names of this.options.queues.waiting())
        for (const name of names) await this.releaseQueue(name);
      for await (const keys of this.options.flows.waiting())
        for (const key of keys) await this.releaseKey(key);
    } finally {
      this.repairing = false;
    }
  }

  stop(): void {
    this.aborter.abort();
    for (const timer of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
  }

  private wake(key: string, inMs: number): void {
    if (this.timers.has(key) || this.aborter.signal.aborted) return;
    const fire = () => {
      this.timers.delete(key);
      void this.releaseKey(key, { canWait: true });
    };
    // a period is at most a week, which a timer can hold
    this.timers.set(key, setTimeout(fire, Math.max(1, inMs)));
  }

  private async withFailuresLogged(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (err) {
      if (!this.aborter.signal.aborted)
        this.options.log.warn({ err }, 'queue: held messages were not let go yet');
    }
  }
}
