import type { Logger } from '../../../lib/logger.js';
import { failureCallbackMessages } from '../message/callbacks.js';
import { newDeadLetterId, type Ticket } from '../message/message.js';
import type { HeldMessages } from '../order/held-messages.js';
import type { TicketSender } from '../rabbitmq/ticket-sender.js';
import type { MessageStore } from '../store/store.js';
import type { RunDeliveries } from './run-deliveries.js';

export interface DeadLettererTools {
  readonly store: MessageStore;
  readonly sender: TicketSender;
  readonly heldMessages: HeldMessages;
  readonly runs: RunDeliveries;
  /** Counts failure callbacks as messages of the day. */
  readonly charge: (count: number) => void;
  /** Unix time in ms. */
  readonly now: () => number;
  readonly log: Logger;
}

/** Works off the tickets that RabbitMQ dead-lettered: writes the dead letter and its failure callback in one statement. */
export class DeadLetterer {
  constructor(private readonly tools: DeadLettererTools) {}

  /** Resolves when the ticket has served; rejects when it must come again. */
  async process({ id }: Ticket, signal: AbortSignal): Promise<'served'> {
    const { store, sender, heldMessages, runs, charge, now, log } = this.tools;
    const failing = await store.failing(id);
    // written before, by a ticket that came twice; or one that RabbitMQ gave up, whose message the sweeper finds
    if (failing === undefined) return 'served';
    const { message, result } = failing;
    const dlqId = newDeadLetterId(now());
    if (message.run !== undefined) {
      if (await runs.deadLetter(failing, dlqId, signal))
        log.info({ id, dlqId }, 'queue: a workflow run has failed');
      return 'served';
    }
    const callbacks = failureCallbackMessages(message, result, dlqId, now());
    if (!(await store.deadLetter(id, dlqId, callbacks))) return 'served';
    charge(callbacks.length);
    log.info({ id, dlqId }, 'queue: a message is dead');
    await sender.sendAll(
      callbacks.map((callback) => ({ id: callback.id, attempt: 0, delayMs: callback.delayMs })),
      signal,
    );
    if (message.queueName !== null) await heldMessages.releaseQueue(message.queueName);
    return 'served';
  }
}
