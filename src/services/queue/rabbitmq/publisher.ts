import { types } from 'node:util';
import { encodeTickets, MAX_TICKETS, type Ticket } from '../message/message.js';
import type { ConfirmChannel } from './client.js';
import { routeFor } from './delay-levels.js';
import type { TopologyNames } from './topology-names.js';

/**
 * Why a ticket may not be in RabbitMQ. `outcome`: `refused` it certainly is not; `unknown` the connection was lost or no
 * confirm came in time.
 */
export class PublishError extends Error {
  constructor(
    readonly outcome: 'refused' | 'unknown',
    message: string,
  ) {
    super(message);
    this.name = 'PublishError';
  }
}

/** Longest wait for RabbitMQ's confirm, in ms. */
export const CONFIRM_MS = {
  /** With the statements around it a sender has an answer within 2 s. */
  whileClientWaits: 1_300,
  inBackground: 10_000,
} as const;

/** What the publisher needs of its connection. */
export interface PublishLink {
  readonly channel: ConfirmChannel | undefined;
  readonly blocked: string | undefined;
}

type Route = ReturnType<typeof routeFor>;

/** Tickets on one way that go together. */
interface Gathering {
  readonly route: Route;
  readonly tickets: Ticket[];
  readonly confirmed: Promise<void>;
  readonly settle: (error?: PublishError) => void;
}

/**
 * Publishes tickets, persistent and mandatory, many in flight on one channel, confirmed by RabbitMQ. Those that go the
 * same way in the same tick share a message: one of its own for each costs RabbitMQ and this process 60 us of CPU a ticket.
 */
export class TicketPublisher {
  private readonly pending = new Map<string, Gathering>();
  /** What is sent at the end of the tick, by route and deadline. */
  private readonly gathering = new Map<string, Gathering>();
  private readonly returned = new Set<string>();
  private sequence = 0;

  constructor(
    private readonly link: PublishLink,
    private readonly names: TopologyNames,
    /** Declares the topology again: a queue of it is gone. */
    private readonly reconnect: (reason: string) => void,
  ) {}

  /** Why nothing can be published now; `undefined` when it can. */
  get unavailable(): string | undefined {
    if (this.link.channel === undefined) return 'RabbitMQ is not connected';
    return this.link.blocked === undefined ? undefined : 'RabbitMQ takes no messages (resource alarm)';
  }

  /** To be called with each new channel. A message that reached no queue comes back before its confirm (seen with 3.10 and 4.0). */
  attach(channel: ConfirmChannel): void {
    channel.on('return', (message) => {
      this.returned.add(String(message.properties.messageId));
    });
  }

  /** To be called when the channel is lost: no confirm of it will come any more. */
  detach(): void {
    for (const { settle } of [...this.pending.values()])
      settle(new PublishError('unknown', 'the connection was lost'));
  }

  /**
   * Resolves when RabbitMQ has confirmed the ticket, which will be due after `delayMs`.
   * @throws PublishError
   */
  publish(ticket: Ticket, delayMs: number, deadlineMs: number): Promise<void> {
    return this.send(ticket, routeFor(this.names, delayMs), deadlineMs);
  }

  /** The same into the dead-letter exchange, for a ticket that was lost on its way there. */
  deadLetter(ticket: Ticket, deadlineMs: number): Promise<void> {
    return this.send(ticket, { exchange: this.names.dead, routingKey: '' }, deadlineMs);
  }

  private send(ticket: Ticket, route: Route, deadlineMs: number): Promise<void> {
    const { unavailable } = this;
    if (unavailable !== undefined) return Promise.reject(new PublishError('refused', unavailable));
    const key = `${route.exchange} ${route.routingKey} ${deadlineMs}`;
    let together = this.gathering.get(key);
    if (together === undefined || together.tickets.length === MAX_TICKETS) {
      together = this.gather(key, route, deadlineMs);
      this.gathering.set(key, together);
    }
    together.tickets.push(ticket);
    return together.confirmed;
  }

  private gather(key: string, route: Route, deadlineMs: number): Gathering {
    const id = String(++this.sequence);
    let settle: Gathering['settle'] = () => undefined;
    const confirmed = new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => settle(new PublishError('unknown', `no confirm within ${deadlineMs} ms`)),
        deadlineMs,
      );
      settle = (error) => {
        clearTimeout(timer);
        this.pending.delete(id);
        if (error === undefined) resolve();
        else reject(error);
      };
    });
    const gathering = { route, tickets: [], confirmed, settle };
    setImmediate(() => {
      if (this.gathering.get(key) === gathering) this.gathering.delete(key);
      this.hand(id, gathering);
    });
    return gathering;
  }

  private hand(id: string, gathering: Gathering): void {
    const { route, tickets, settle } = gathering;
    const { channel } = this.link;
    this.pending.set(id, gathering);
    try {
      if (channel === undefined) throw new Error('not connected');
      channel.publish(
        route.exchange,
        route.routingKey,
        encodeTickets(tickets),
        { persistent: true, mandatory: true, messageId: id },
        (error: unknown) => settle(this.judgeConfirm(id, error)),
      );
    } catch (error) {
      settle(new PublishError('unknown', (error as Error).message));
    }
  }

  private judgeConfirm(id: string, error: unknown): PublishError | undefined {
    const wasReturned = this.returned.delete(id);
    if (error !== null && error !== undefined) {
      // amqplib reports a closed channel the same way as the broker's refusal
      const refused = types.isNativeError(error) && /nacked/i.test(error.message);
      return new PublishError(refused ? 'refused' : 'unknown', 'RabbitMQ did not confirm the message');
    }
    if (!wasReturned) return undefined;
    this.reconnect('a ticket had no queue to go to');
    return new PublishError('refused', 'no queue takes the message');
  }
}
