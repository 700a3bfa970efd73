import { setTimeout as sleep } from 'node:timers/promises';
import { backoffDelay } from '../../lib/backoff.js';
import type { Logger } from '../../lib/logger.js';
import { InterruptedError } from './attempt.js';
import { callbackMessages } from './callbacks.js';
import { type AttemptResult, decide } from './decide.js';
import type { DestinationPlaces } from './destination-places.js';
import type { LeaseKeeper } from './lease-keeper.js';
import { type ClaimedMessage, newDeadLetterId, type Token } from './message.js';
import type { TokenPublisher } from './publisher.js';
import type { Conclusion, MessageStore } from './store.js';

/** So many claims without an outcome mean that the message kills whoever delivers it. */
const MAX_LOST_CLAIMS = 20;
/** An outcome that Postgres does not take is repeated for so long, in ms: RabbitMQ takes a token back after 30 min. */
const CONCLUDE_MS = 10 * 60_000;
const CONFIRM_MS = 10_000;
/** Shortest wait of a token that came too early or while its message was being delivered, in ms. */
const MIN_WAIT_MS = 125;

export interface WorkerTools {
  readonly store: MessageStore;
  readonly publisher: TokenPublisher;
  readonly leases: LeaseKeeper;
  readonly places: DestinationPlaces;
  readonly deliver: (message: ClaimedMessage, signal: AbortSignal) => Promise<AttemptResult>;
  readonly now: () => number;
  readonly log: Logger;
}

/** Works off one token: claim, attempt, outcome, and what follows. Nothing of it lives only here. */
export class Worker {
  constructor(private readonly tools: WorkerTools) {}

  /**
   * Resolves when the token has served: RabbitMQ holds whatever comes after it. Rejects when it must come again.
   * @param signal aborts when the gateway cannot wait any longer
   */
  async process(token: Token, signal: AbortSignal): Promise<void> {
    const claim = await this.tools.store.claim(token);
    switch (claim.kind) {
      case 'over':
        return;
      case 'busy':
        return this.publish(token, Math.max(MIN_WAIT_MS, claim.waitMs), signal);
      case 'stale':
        // its follower may have been lost in a crash right after the outcome; one token too many does no harm
        return this.publish({ id: token.id, attempt: claim.attempt }, claim.waitMs, signal);
      case 'claimed':
        return this.work(claim.message, signal);
    }
  }

  private async work(message: ClaimedMessage, signal: AbortSignal): Promise<void> {
    const { leases, places, store } = this.tools;
    leases.hold(message);
    try {
      const entry = await places.enter(message.url);
      if ('awayMs' in entry) return await this.postpone(message, entry.awayMs, signal);
      const conclusion = await this.attempt(message, signal).finally(entry.leave);
      if (!(await this.conclude(conclusion, signal))) {
        this.tools.log.warn({ id: message.id }, 'queue: an outcome came after the claim was lost');
        return;
      }
      leases.letGo(message);
      await this.publishFollowers(conclusion, signal);
    } catch (error) {
      if (error instanceof InterruptedError) await store.release(message);
      throw error;
    } finally {
      leases.letGo(message);
    }
  }

  /** Its destination has too many attempts open: the message makes room for others, and the try does not count. */
  private async postpone(message: ClaimedMessage, awayMs: number, signal: AbortSignal): Promise<void> {
    if (!(await this.tools.store.postpone(message, awayMs))) return;
    this.tools.leases.letGo(message);
    await this.publish({ id: message.id, attempt: message.attempt }, awayMs, signal);
  }

  private async attempt(message: ClaimedMessage, signal: AbortSignal): Promise<Conclusion> {
    const { deliver, now } = this.tools;
    const lostClaims = message.claims - message.attempt - 1;
    const result: AttemptResult =
      lostClaims < MAX_LOST_CLAIMS
        ? await deliver(message, signal)
        : { kind: 'failure', reason: `given up: ${lostClaims} attempts ended without an outcome` };
    const decision =
      lostClaims < MAX_LOST_CLAIMS
        ? decide({ retried: message.attempt, maxRetries: message.maxRetries, result }, now())
        : { kind: 'dead' as const };
    const dlqId = decision.kind === 'dead' ? newDeadLetterId(now()) : undefined;
    return {
      message,
      result,
      decision,
      dlqId,
      callbacks: callbackMessages(message, result, decision, dlqId, now()),
    };
  }

  /** The destination has been called: its answer is worth waiting for Postgres, or the message would be delivered again. */
  private async conclude(conclusion: Conclusion, signal: AbortSignal): Promise<boolean> {
    const giveUpAt = performance.now() + CONCLUDE_MS;
    for (let failures = 0; ; failures++) {
      try {
        return await this.tools.store.conclude(conclusion);
      } catch (err) {
        if (signal.aborted || performance.now() > giveUpAt) throw err;
        this.tools.log.warn({ err, id: conclusion.message.id }, 'queue: an outcome was not written yet');
        await sleep(backoffDelay(failures), undefined, { signal }).catch(() => undefined);
      }
    }
  }

  private async publishFollowers(
    { message, decision, callbacks }: Conclusion,
    signal: AbortSignal,
  ): Promise<void> {
    const followers: Promise<void>[] = callbacks.map(({ id, delayMs }) =>
      this.publish({ id, attempt: 0 }, delayMs, signal),
    );
    if (decision.kind === 'retry')
      followers.push(
        this.publish({ id: message.id, attempt: message.attempt + 1 }, decision.delayMs, signal),
      );
    await Promise.all(followers);
  }

  /** Until RabbitMQ has it or the gateway stops; what is missing then, the sweeper finds. */
  private async publish(token: Token, delayMs: number, signal: AbortSignal): Promise<void> {
    const startedAt = performance.now();
    for (let failures = 0; ; failures++) {
      try {
        const elapsed = performance.now() - startedAt;
        return await this.tools.publisher.publish(token, Math.max(0, delayMs - elapsed), CONFIRM_MS);
      } catch (err) {
        if (signal.aborted) throw err;
        await sleep(backoffDelay(failures), undefined, { signal }).catch(() => undefined);
      }
    }
  }
}
