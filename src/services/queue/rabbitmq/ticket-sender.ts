import { setTimeout as sleep } from 'node:timers/promises';
import { backoffDelay } from '../../../lib/backoff.js';
import type { DueTicket, Ticket } from '../message/message.js';
import { CONFIRM_MS, type TicketPublisher } from './publisher.js';

/** Publishes tickets until RabbitMQ has them or the gateway stops; what is missing then, the sweeper finds. */
export class TicketSender {
  constructor(private readonly publisher: TicketPublisher) {}

  async send(ticket: Ticket, delayMs: number, signal: AbortSignal): Promise<void> {
    const startedAt = performance.now();
    for (let failures = 0; ; failures++) {
      try {
        const elapsed = performance.now() - startedAt;
        return await this.publisher.publish(ticket, Math.max(0, delayMs - elapsed), CONFIRM_MS.inBackground);
      } catch (err) {
        if (signal.aborted) throw err;
        await sleep(backoffDelay(failures), undefined, { signal }).catch(() => undefined);
      }
    }
  }

  async sendAll(tickets: readonly DueTicket[], signal: AbortSignal): Promise<void> {
    await Promise.all(tickets.map((ticket) => this.send(ticket, ticket.delayMs, signal)));
  }

  /** To the dead-letter exchange. */
  deadLetter(ticket: Ticket): Promise<void> {
    return this.publisher.deadLetter(ticket, CONFIRM_MS.inBackground);
  }
}
