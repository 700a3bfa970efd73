import type { Logger } from '../../../lib/logger.js';
import { failureCallbackMessages } from '../message/callbacks.js';
import { newDeadLetterId, type Token } from '../message/message.js';
import type { Turns } from '../order/turns.js';
import type { TokenSender } from '../rabbitmq/token-sender.js';
import type { MessageStore } from '../store/store.js';

export interface DeadLettererTools {
  readonly store: MessageStore;
  readonly sender: TokenSender;
  readonly turns: Turns;
  /** Counts failure callbacks as messages of the day. */
  readonly charge: (count: number) => void;
  /** Unix time in ms. */
  readonly now: () => number;
  readonly log: Logger;
}

/** Works off the tokens that RabbitMQ dead-lettered: writes the dead letter and its failure callback in one statement. */
export class DeadLetterer {
  constructor(private readonly tools: DeadLettererTools) {}

  /** Resolves when the token has served; rejects when it must come again. */
  async process({ id }: Token, signal: AbortSignal): Promise<'served'> {
    const { store, sender, turns, charge, now, log } = this.tools;
    const dying = await store.dying(id);
    // written before, by a token that came twice; or one that RabbitMQ gave up, whose message the sweeper finds
    if (dying === undefined) return 'served';
    const { message, result } = dying;
    const dlqId = newDeadLetterId(now());
    const callbacks = failureCallbackMessages(message, result, dlqId, now());
    if (!(await store.bury(id, dlqId, callbacks))) return 'served';
    charge(callbacks.length);
    log.info({ id, dlqId }, 'queue: a message is dead');
    await sender.sendAll(
      callbacks.map((callback) => ({ id: callback.id, attempt: 0, delayMs: callback.delayMs })),
      signal,
    );
    if (message.queueName !== null) await turns.releaseQueue(message.queueName);
    return 'served';
  }
}
