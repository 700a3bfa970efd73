import type { Logger } from '../../../lib/logger.js';
import type { Database, Queryable, Transactions } from '../../../lib/postgres/postgres.js';
import { type Intake, type IntakeTools, prepare, takeInWith, ticketsOf } from '../intake/intake.js';
import type { DueTicket, NewMessage } from '../message/message.js';
import type { HeldMessages } from '../order/held-messages.js';
import { CONFIRM_MS, type TicketPublisher } from '../rabbitmq/publisher.js';
import type { TicketSender } from '../rabbitmq/ticket-sender.js';

export interface ChangeTools {
  readonly database: Database;
  readonly intake: IntakeTools;
  readonly publisher: TicketPublisher;
  readonly sender: TicketSender;
  readonly heldMessages: HeldMessages;
  readonly log: Logger;
}

/** What follows from a change of runs, and is stored with it. */
export interface Follow {
  send(message: NewMessage): void;
  /** A message that is there already may have lost its ticket. */
  repeat(messageId: string): void;
  /** Messages under these flow-control keys are over. */
  free(keys: readonly string[]): void;
}

/**
 * Changes runs: their rows and the messages that follow in one transaction. Once that is committed the change is made; a
 * ticket that RabbitMQ does not get then comes from the sweeper. Unlike a publish it is never taken back: the step would be
 * stored, and nothing would ever follow from it.
 */
export class RunChanges {
  constructor(private readonly tools: ChangeTools) {}

  /** For a request, which is answered when the change is committed. */
  async forRequest<T>(work: (connection: Queryable, follow: Follow) => Promise<T>): Promise<T> {
    const { result, intake } = await this.commit(this.tools.database, work);
    this.publish(intake.tickets);
    return result;
  }

  /**
   * For requests whose changes are one statement, messages included, and so need no transaction but its own.
   * @param messages those that it may store, which have flow-control keys or nothing to wait for
   * @param statement resolves to the ids of those that it has stored
   */
  async byStatement(
    messages: readonly NewMessage[],
    statement: (connection: Queryable) => Promise<ReadonlySet<string>>,
  ): Promise<ReadonlySet<string>> {
    const { database, intake, heldMessages } = this.tools;
    const storedOf = (ids: ReadonlySet<string>) => messages.filter(({ id }) => ids.has(id));
    if (messages.every(({ details }) => details.flow === undefined)) {
      const ids = await statement(database);
      this.publish(ticketsOf(storedOf(ids)));
      return ids;
    }
    const { ids, waiting } = await database.transaction(async (connection) => {
      const done = await statement(connection);
      return { ids: done, waiting: await prepare(connection, storedOf(done), intake) };
    });
    this.publish(ticketsOf(storedOf(ids)));
    heldMessages.begin(waiting);
    return ids;
  }

  /** Messages under these flow-control keys are over. */
  free(keys: readonly string[]): void {
    for (const key of keys) void this.tools.heldMessages.releaseKey(key);
  }

  private publish(tickets: readonly DueTicket[]): void {
    const { publisher, log } = this.tools;
    for (const ticket of tickets)
      publisher.publish(ticket, ticket.delayMs, CONFIRM_MS.whileClientWaits).catch((err: unknown) => {
        log.warn({ err, id: ticket.id }, 'queue: a message of a workflow run waits for the sweeper');
      });
  }

  /** For a ticket, which has served when those of the messages that follow are confirmed. */
  async forTicket<T>(
    signal: AbortSignal,
    work: (connection: Queryable, follow: Follow) => Promise<T>,
  ): Promise<T> {
    const { result, intake } = await this.commit(this.tools.database.patient, work);
    await this.tools.sender.sendAll(intake.tickets, signal);
    return result;
  }

  private async commit<T>(
    database: Transactions,
    work: (connection: Queryable, follow: Follow) => Promise<T>,
  ): Promise<{ result: T; intake: Intake }> {
    const { intake: tools, heldMessages } = this.tools;
    const done = await database.transaction(async (connection) => {
      const messages: NewMessage[] = [];
      const repeated: string[] = [];
      const freed = new Set<string>();
      const result = await work(connection, {
        send: (message) => void messages.push(message),
        repeat: (id) => void repeated.push(id),
        free: (keys) => {
          for (const key of keys) freed.add(key);
        },
      });
      const stored = await takeInWith(connection, messages, tools);
      const again = repeated.map((id) => ({ id, attempt: 0, delayMs: 0 }));
      return { result, freed, intake: { ...stored, tickets: [...stored.tickets, ...again] } };
    });
    heldMessages.begin(done.intake.waiting);
    for (const key of done.freed) void heldMessages.releaseKey(key);
    return done;
  }
}
