import type { Channel, ConsumeMessage } from '../rabbitmq/client.js';
import type { Settlement } from './worker.js';

/** What becomes of a RabbitMQ message: the settlement that its tickets have in common, or it goes back. */
export type Settled = Settlement | 'again';

/** On a channel that is gone there is nothing to settle: RabbitMQ has the ticket back already, and amqplib would throw. */
export function settle(channel: Channel, message: ConsumeMessage, settlement: Settled): void {
  try {
    if (settlement === 'served') channel.ack(message);
    else channel.nack(message, false, settlement === 'again');
  } catch (error) {
    if ((error as Error).name !== 'IllegalOperationError') throw error;
  }
}
