import { setTimeout as sleep } from 'node:timers/promises';
import { backoffDelay } from '../../../lib/backoff.js';
import type { DueToken, Token } from '../message/message.js';
import type { TokenPublisher } from './publisher.js';

const CONFIRM_MS = 10_000;

/** Publishes tokens until RabbitMQ has them or the gateway stops; what is missing then, the sweeper finds. */
export class TokenSender {
  constructor(private readonly publisher: TokenPublisher) {}

  async send(token: Token, delayMs: number, signal: AbortSignal): Promise<void> {
    const startedAt = performance.now();
    for (let failures = 0; ; failures++) {
      try {
        const elapsed = performance.now() - startedAt;
        return await this.publisher.publish(token, Math.max(0, delayMs - elapsed), CONFIRM_MS);
      } catch (err) {
        if (signal.aborted) throw err;
        await sleep(backoffDelay(failures), undefined, { signal }).catch(() => undefined);
      }
    }
  }

  async sendAll(tokens: readonly DueToken[], signal: AbortSignal): Promise<void> {
    await Promise.all(tokens.map((token) => this.send(token, token.delayMs, signal)));
  }

  /** To the dead-letter exchange. */
  bury(token: Token): Promise<void> {
    return this.publisher.bury(token, CONFIRM_MS);
  }
}
