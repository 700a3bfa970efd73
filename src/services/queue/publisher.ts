import { types } from 'node:util';
import type { ConfirmChannel } from './client.js';
import { routeFor } from './delay-levels.js';
import { encodeToken, type Token } from './message.js';
import type { TopologyNames } from './topology-names.js';

/**
 * Why a token may not be in RabbitMQ. `outcome`: `refused` it certainly is not; `unknown` the connection was lost or no
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

/** What the publisher needs of its connection. */
export interface PublishLink {
  readonly channel: ConfirmChannel | undefined;
  readonly blocked: string | undefined;
}

interface Pending {
  readonly settle: (error?: PublishError) => void;
}

/** Publishes tokens, persistent and mandatory, many in flight on one channel, each confirmed by RabbitMQ. */
export class TokenPublisher {
  private readonly pending = new Map<string, Pending>();
  private readonly returned = new Set<string>();
  private sequence = 0;

  constructor(
    private readonly link: PublishLink,
    private readonly names: TopologyNames,
    /** Declares the topology again: a queue of it is gone. */
    private readonly mend: (reason: string) => void,
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
   * Resolves when RabbitMQ has confirmed the token, which will be due after `delayMs`.
   * @throws PublishError
   */
  publish(token: Token, delayMs: number, deadlineMs: number): Promise<void> {
    return this.send(token, routeFor(this.names, delayMs), deadlineMs);
  }

  /** The same into the dead-letter exchange, for a token that was lost on its way there. */
  bury(token: Token, deadlineMs: number): Promise<void> {
    return this.send(token, { exchange: this.names.dead, routingKey: '' }, deadlineMs);
  }

  private send(token: Token, route: ReturnType<typeof routeFor>, deadlineMs: number): Promise<void> {
    const { channel } = this.link;
    const { unavailable } = this;
    if (channel === undefined || unavailable !== undefined)
      return Promise.reject(new PublishError('refused', unavailable ?? 'not connected'));
    const id = String(++this.sequence);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => settle(new PublishError('unknown', `no confirm within ${deadlineMs} ms`)),
        deadlineMs,
      );
      const settle = (error?: PublishError) => {
        clearTimeout(timer);
        this.pending.delete(id);
        if (error === undefined) resolve();
        else reject(error);
      };
      this.pending.set(id, { settle });
      try {
        channel.publish(
          route.exchange,
          route.routingKey,
          encodeToken(token),
          { persistent: true, mandatory: true, messageId: id },
          (error: unknown) => settle(this.judgeConfirm(id, error)),
        );
      } catch (error) {
        settle(new PublishError('unknown', (error as Error).message));
      }
    });
  }

  private judgeConfirm(id: string, error: unknown): PublishError | undefined {
    const wasReturned = this.returned.delete(id);
    if (error !== null && error !== undefined) {
      // amqplib reports a closed channel the same way as the broker's refusal
      const refused = types.isNativeError(error) && /nacked/i.test(error.message);
      return new PublishError(refused ? 'refused' : 'unknown', 'RabbitMQ did not confirm the message');
    }
    if (!wasReturned) return undefined;
    this.mend('a token had no queue to go to');
    return new PublishError('refused', 'no queue takes the message');
  }
}
