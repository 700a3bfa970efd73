import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { backoffDelay } from '../../../lib/backoff.js';
import type { Logger } from '../../../lib/logger.js';
import { classifyDatabaseError } from '../../../lib/postgres/postgres.js';
import { decodeTickets, type Ticket } from '../message/message.js';
import type { Channel, ConsumeMessage } from '../rabbitmq/client.js';
import { Slots } from './slots.js';
import type { Settlement } from './worker.js';

export interface DispatcherOptions {
  /** The queues that tickets are taken from, each with what is done with them. */
  readonly sources: readonly Source[];
  /** The queue of tickets that no queue took. */
  readonly unrouted: string;
  /** Tickets of each source that are worked on at once, beside those whose attempts wait. */
  readonly concurrency: number;
  /** Resolves when a ticket is safe in the dead-letter queue. */
  readonly deadLetter: (ticket: Ticket) => Promise<void>;
  /** Resolves when a ticket is in the work queue again. */
  readonly again: (ticket: Ticket, signal: AbortSignal) => Promise<void>;
  /** Declares the topology again: a queue of it is gone. */
  readonly reconnect: (reason: string) => void;
  /** Rejects while messages cannot be claimed. */
  readonly checkStore: () => Promise<void>;
  readonly log: Logger;
}

export interface Source {
  readonly queue: string;
  /** `onWaiting` is called when others may go on meanwhile; what is settled then is no longer RabbitMQ's matter. */
  readonly process: (ticket: Ticket, signal: AbortSignal, onWaiting: () => void) => Promise<Settlement>;
}

/**
 * Takes tickets from its queues and has them processed, a bounded number at once. A message with tickets is acknowledged
 * (or rejected into the dead-letter exchange) when processing of all has resolved, and goes back to RabbitMQ when it
 * rejects for one: those of the others that have served do so again without effect. While the store is away it takes none.
 * A ticket whose attempt waits counts as served: Postgres has the claim, whose lease ends with this gateway, and the sweeper
 * then finds the message.
 */
export class Dispatcher {
  private channel: Channel | undefined;
  private consumerTags: string[] = [];
  private readonly inFlight = new Set<Promise<void>>();
  private readonly aborter = new AbortController();
  private readonly slots: ReadonlyMap<Source, Slots>;
  private stopping = false;
  private storeDown = false;
  private readonly ending = new AbortController();

  constructor(private readonly options: DispatcherOptions) {
    // every attempt in flight listens
    setMaxListeners(0, this.aborter.signal);
    this.slots = new Map(options.sources.map((source) => [source, new Slots(options.concurrency)]));
  }

  /** To be called with each new channel, after the topology was declared. */
  async attach(channel: Channel): Promise<void> {
    const { unrouted, concurrency, reconnect } = this.options;
    // as many messages as slots: should each have one slow ticket left, the other slots still get work
    await channel.prefetch(concurrency);
    await channel.consume(unrouted, (message) => {
      // the sweeper gives such a ticket's message another one
      if (message !== null) settle(channel, message, 'served');
      reconnect(
        message === null ? 'the queue of unrouted tickets was deleted' : 'a ticket had no queue to go to',
      );
    });
    this.channel = channel;
    if (!this.storeDown) await this.consume(channel);
  }

  /** To be called when the channel is lost. What is in flight ends; its tickets come again and are found out of date. */
  detach(): void {
    this.channel = undefined;
    this.consumerTags = [];
  }

  /** Takes no more tickets, lets attempts end for `graceMs`, interrupts the rest, whose tickets go back. */
  async stop(graceMs: number): Promise<void> {
    this.stopping = true;
    this.ending.abort();
    for (const slots of this.slots.values()) slots.close();
    await this.cancel();
    const interrupt = setTimeout(() => this.aborter.abort(), graceMs);
    while (this.inFlight.size > 0) await Promise.allSettled(this.inFlight);
    clearTimeout(interrupt);
  }

  private async consume(channel: Channel): Promise<void> {
    for (const source of this.options.sources) {
      if (this.stopping) return;
      const { consumerTag } = await channel.consume(source.queue, (message) => {
        if (message === null) this.options.reconnect(`the queue ${source.queue} was deleted`);
        else this.take(channel, message, source);
      });
      if (this.channel === channel) this.consumerTags.push(consumerTag);
    }
  }

  private async cancel(): Promise<void> {
    const { channel, consumerTags } = this;
    this.consumerTags = [];
    // fails only with the channel, and then there is no consumer either
    for (const tag of consumerTags) await channel?.cancel(tag).catch(() => undefined);
  }

  private take(channel: Channel, message: ConsumeMessage, source: Source): void {
    if (this.stopping || this.storeDown) {
      settle(channel, message, 'again');
      return;
    }
    const tickets = decodeTickets(message.content);
    if (tickets === undefined) {
      this.options.log.error(
        { bytes: message.content.length },
        'queue: something else than tickets was in the queue',
      );
      settle(channel, message, 'served');
      return;
    }
    this.track(this.processAll(tickets, source).then((settled) => settle(channel, message, settled)));
  }

  private async processAll(tickets: readonly Ticket[], source: Source): Promise<Settled> {
    const [first] = tickets;
    if (tickets.length === 1 && first !== undefined) return this.processInSlot(first, source);
    const each = tickets.map(async (ticket) => {
      const settled = await this.processInSlot(ticket, source);
      // the others must not be dead-lettered with it
      return settled === 'dead' ? this.deadLetterAlone(ticket) : settled;
    });
    return (await Promise.all(each)).includes('again') ? 'again' : 'served';
  }

  private async deadLetterAlone(ticket: Ticket): Promise<Settled> {
    try {
      await this.options.deadLetter(ticket);
      return 'served';
    } catch (err) {
      this.options.log.warn({ err, id: ticket.id }, 'queue: a dead ticket goes back');
      return 'again';
    }
  }

  private async processInSlot(ticket: Ticket, source: Source): Promise<Settled> {
    const slots = this.slots.get(source) as Slots;
    if (!(await slots.enter())) return 'again';
    return new Promise((resolve) => {
      let waits = false;
      const onWaiting = () => {
        waits = true;
        slots.leave();
        this.track(work);
        resolve('served');
      };
      const work = this.process(ticket, source, onWaiting).then(async (settled) => {
        if (waits) return this.settleLate(ticket, settled);
        slots.leave();
        resolve(settled);
      });
    });
  }

  private async process(ticket: Ticket, source: Source, onWaiting: () => void): Promise<Settled> {
    if (this.stopping || this.storeDown) return 'again';
    try {
      return await source.process(ticket, this.aborter.signal, onWaiting);
    } catch (err) {
      if (!this.stopping) {
        this.options.log.warn({ err, id: ticket.id }, 'queue: a ticket goes back');
        await this.pauseUntilStoreIsBack(classifyDatabaseError(err).kind);
      }
      return 'again';
    }
  }

  /** RabbitMQ has forgotten the ticket: what would have become of it is done with a new one. */
  private async settleLate(ticket: Ticket, settled: Settled): Promise<void> {
    const { deadLetter, again, log } = this.options;
    try {
      if (settled === 'dead') await deadLetter(ticket);
      else if (settled === 'again') await again(ticket, this.aborter.signal);
    } catch (err) {
      log.warn({ err, id: ticket.id }, 'queue: a message is left to the sweeper');
    }
  }

  private track(work: Promise<void>): void {
    const tracked = work.finally(() => this.inFlight.delete(tracked));
    this.inFlight.add(tracked);
  }

  /** Otherwise a ticket that cannot be claimed would come again at once, and again. */
  private async pauseUntilStoreIsBack(kind: ReturnType<typeof classifyDatabaseError>['kind']): Promise<void> {
    if (this.storeDown) return;
    this.storeDown = true;
    await this.cancel();
    this.options.log.warn({ kind }, 'queue: no deliveries until the database answers');
    void this.resumeWhenStoreIsBack();
  }

  private async resumeWhenStoreIsBack(): Promise<void> {
    for (let failures = 0; ; failures++) {
      await sleep(backoffDelay(failures), undefined, { signal: this.ending.signal }).catch(() => undefined);
      if (this.stopping) return;
      try {
        await this.options.checkStore();
        this.storeDown = false;
        if (this.channel !== undefined) await this.consume(this.channel);
        this.options.log.info('queue: deliveries go on');
        return;
      } catch (err) {
        this.options.log.debug({ err }, 'queue: the database is still away');
      }
    }
  }
}

/** What becomes of a RabbitMQ message: the settlement that its tickets have in common, or it goes back. */
type Settled = Settlement | 'again';

/** On a channel that is gone there is nothing to settle: RabbitMQ has the ticket back already, and amqplib would throw. */
function settle(channel: Channel, message: ConsumeMessage, settlement: Settled): void {
  try {
    if (settlement === 'served') channel.ack(message);
    else channel.nack(message, false, settlement === 'again');
  } catch (error) {
    if ((error as Error).name !== 'IllegalOperationError') throw error;
  }
}
