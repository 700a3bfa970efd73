import { setTimeout as sleep } from 'node:timers/promises';
import { backoffDelay } from '../../../lib/backoff.js';
import type { Logger } from '../../../lib/logger.js';
import type { Ending, Entry } from '../destinations/attempts.js';
import type { DestinationPlaces } from '../destinations/destination-places.js';
import { callbackMessages } from '../message/callbacks.js';
import type { Conclusion } from '../message/conclusion.js';
import { type AttemptResult, type Decision, decide } from '../message/decide.js';
import type { ClaimedMessage, Ticket } from '../message/message.js';
import type { QueueMetrics } from '../metrics.js';
import type { HeldMessages } from '../order/held-messages.js';
import type { TicketSender } from '../rabbitmq/ticket-sender.js';
import type { MessageStore } from '../store/store.js';
import { InterruptedError, NotAttemptedError } from './attempt.js';
import type { LeaseKeeper } from './lease-keeper.js';
import type { RunDeliveries } from './run-deliveries.js';

/** So many claims without an outcome mean that the message kills whoever delivers it. */
const MAX_LOST_CLAIMS = 20;
/** An outcome that Postgres does not take is repeated for so long, in ms: RabbitMQ takes a ticket back after 30 min. */
const CONCLUDE_MS = 10 * 60_000;
/** Shortest wait of a ticket that came too early or while its message was being delivered, in ms. */
const MIN_WAIT_MS = 125;
/** Wait of a message whose body Postgres did not give, in ms. */
const NOT_ATTEMPTED_MS = 1_000;

/** What becomes of a ticket: it has served, or it goes to the dead-letter exchange. */
export type Settlement = 'served' | 'dead';

export interface WorkerTools {
  readonly store: MessageStore;
  readonly sender: TicketSender;
  readonly heldMessages: HeldMessages;
  readonly leases: LeaseKeeper;
  readonly places: DestinationPlaces;
  readonly runs: RunDeliveries;
  readonly deliver: (message: ClaimedMessage, signal: AbortSignal) => Promise<AttemptResult>;
  /** Longest time for an attempt of the message, in ms. */
  readonly timeoutMs: (message: ClaimedMessage) => number;
  readonly metrics: QueueMetrics;
  /** Counts callbacks as messages of the day. */
  readonly charge: (count: number) => void;
  readonly now: () => number;
  readonly log: Logger;
}

/** Works off one ticket: claim, attempt, outcome, and what follows. Nothing of it lives only here. */
export class Worker {
  constructor(private readonly tools: WorkerTools) {}

  /**
   * Resolves when RabbitMQ may have the ticket back for good: it holds whatever comes after it. Rejects when the ticket
   * must come again.
   * @param signal aborts when the gateway cannot wait any longer
   * @param onWaiting called when the attempt has waited for its answer for so long that others may go on meanwhile
   */
  async process(ticket: Ticket, signal: AbortSignal, onWaiting: () => void): Promise<Settlement> {
    const { store, sender, heldMessages } = this.tools;
    const claim = await store.claim(ticket);
    switch (claim.kind) {
      case 'over':
        return 'served';
      case 'failing':
        return 'dead';
      case 'busy':
        await sender.send(ticket, Math.max(MIN_WAIT_MS, claim.waitMs), signal);
        return 'served';
      case 'stale':
        // its follower may have been lost in a crash right after the outcome; one ticket too many does no harm
        await sender.send({ id: ticket.id, attempt: claim.attempt }, claim.waitMs, signal);
        return 'served';
      case 'keyed':
        await heldMessages.hold(ticket, claim.key);
        return 'served';
      case 'claimed':
        return this.work(claim.message, signal, onWaiting);
    }
  }

  private async work(
    message: ClaimedMessage,
    signal: AbortSignal,
    onWaiting: () => void,
  ): Promise<Settlement> {
    const { leases, store, heldMessages, log } = this.tools;
    leases.hold(message);
    if (message.run?.role === 'timer') return this.expire(message, signal);
    let unused = 0;
    let result: AttemptResult | undefined;
    try {
      const entry = await this.enter(message, onWaiting);
      if (entry.kind === 'away') {
        unused = 1;
        return await this.postpone(message, entry.awayMs, signal);
      }
      const conclusion = await this.attempt(message, entry, signal);
      result = conclusion.result;
      if (!(await this.conclude(conclusion, signal))) {
        log.warn(
          { id: message.id },
          'queue: an outcome came after the claim was lost or the message cancelled',
        );
        return 'served';
      }
      leases.drop(message);
      this.tools.metrics.concluded(conclusion);
      this.tools.charge(conclusion.callbacks.length);
      await this.follow(conclusion, signal);
      return conclusion.decision.kind === 'dead' && !this.tools.runs.concludes(conclusion)
        ? 'dead'
        : 'served';
    } catch (error) {
      if (error instanceof InterruptedError) await store.release(message);
      if (!(error instanceof NotAttemptedError)) throw error;
      log.warn({ err: error.cause, id: message.id }, 'queue: an attempt could not be made yet');
      unused = 1;
      return await this.postpone(message, NOT_ATTEMPTED_MS, signal);
    } finally {
      if (result?.kind === 'response') result.release?.();
      leases.drop(message);
      if (message.details.flow !== undefined)
        await heldMessages.releaseKey(message.details.flow.key, { unused });
    }
  }

  private async expire(message: ClaimedMessage, signal: AbortSignal): Promise<Settlement> {
    try {
      await this.untilWritten(message, signal, () => this.tools.runs.expire(message, signal));
      return 'served';
    } finally {
      this.tools.leases.drop(message);
    }
  }

  private enter(message: ClaimedMessage, onWaiting: () => void): Entry | Promise<Entry> {
    const { places, now, timeoutMs } = this.tools;
    return places.enter({
      ticket: { id: message.id, attempt: message.attempt },
      url: message.url,
      flowKey: message.details.flow?.key,
      bytes: message.body.length + (message.run?.bytes ?? 0),
      overdueMs: now() - message.dueAt,
      timeoutMs: timeoutMs(message),
      onWaiting,
    });
  }

  /** Its destination has its share of attempts open: the message makes room for others, and the try does not count. */
  private async postpone(message: ClaimedMessage, awayMs: number, signal: AbortSignal): Promise<Settlement> {
    const { store, leases, sender } = this.tools;
    if (!(await store.postpone(message, awayMs))) return 'served';
    leases.drop(message);
    await sender.send({ id: message.id, attempt: message.attempt }, awayMs, signal);
    return 'served';
  }

  private async attempt(
    message: ClaimedMessage,
    entry: Exclude<Entry, { kind: 'away' }>,
    signal: AbortSignal,
  ): Promise<Conclusion> {
    const { now } = this.tools;
    const lostClaims = message.claims - message.attempt - 1;
    let result: AttemptResult;
    let decision: Decision;
    if (entry.kind === 'place' && lostClaims >= MAX_LOST_CLAIMS) {
      entry.leave('interrupted');
      result = { kind: 'failure', reason: `given up: ${lostClaims} attempts ended without an outcome` };
      decision = { kind: 'dead' };
    } else {
      result =
        entry.kind === 'place'
          ? await this.call(message, entry.leave, signal)
          : { kind: 'failure', reason: entry.reason };
      const judged = await this.judge(message, result);
      result = judged.result;
      const { attempt: retried, maxRetries, details } = message;
      decision = judged.isRefused
        ? { kind: 'dead' }
        : decide({ retried, maxRetries, retryDelay: details.retryDelay, result }, now());
    }
    return { message, result, decision, callbacks: callbackMessages(message, result, now()) };
  }

  private async judge(
    message: ClaimedMessage,
    result: AttemptResult,
  ): Promise<{ result: AttemptResult; isRefused: boolean }> {
    if (message.run === undefined) return { result, isRefused: false };
    try {
      return await this.tools.runs.judged(message, result);
    } catch (error) {
      if (result.kind === 'response') result.release?.();
      throw error;
    }
  }

  private async call(
    message: ClaimedMessage,
    leave: (ending: Ending) => void,
    signal: AbortSignal,
  ): Promise<AttemptResult> {
    const { deliver, now, metrics } = this.tools;
    const done = metrics.attempt(now() - message.dueAt);
    let ending: Ending = 'interrupted';
    try {
      const result = await deliver(message, signal);
      ending = result.kind === 'response' ? 'answered' : 'failed';
      return result;
    } finally {
      done();
      leave(ending);
    }
  }

  /** The destination has been called: its answer is worth waiting for Postgres, or the message would be delivered again. */
  private conclude(conclusion: Conclusion, signal: AbortSignal): Promise<boolean> {
    const { runs, store } = this.tools;
    return this.untilWritten(conclusion.message, signal, () =>
      runs.concludes(conclusion) ? runs.conclude(conclusion, signal) : store.conclude(conclusion),
    );
  }

  private async untilWritten<T>(
    { id }: ClaimedMessage,
    signal: AbortSignal,
    write: () => Promise<T>,
  ): Promise<T> {
    const giveUpAt = performance.now() + CONCLUDE_MS;
    for (let failures = 0; ; failures++) {
      try {
        return await write();
      } catch (err) {
        if (signal.aborted || performance.now() > giveUpAt) throw err;
        this.tools.log.warn({ err, id }, 'queue: an outcome was not written yet');
        await sleep(backoffDelay(failures), undefined, { signal }).catch(() => undefined);
      }
    }
  }

  private async follow({ message, decision, callbacks }: Conclusion, signal: AbortSignal): Promise<void> {
    const { sender, heldMessages } = this.tools;
    await sender.sendAll(
      callbacks.map(({ id, delayMs }) => ({ id, attempt: 0, delayMs })),
      signal,
    );
    if (decision.kind === 'retry')
      await sender.send({ id: message.id, attempt: message.attempt + 1 }, decision.delayMs, signal);
    if (message.queueName !== null && decision.kind === 'delivered')
      await heldMessages.releaseQueue(message.queueName);
  }
}
