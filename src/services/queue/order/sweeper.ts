import type { Logger } from '../../../lib/logger.js';
import { CONFIRM_MS, type TicketPublisher } from '../rabbitmq/publisher.js';
import type { MessageUpkeep } from '../store/message-upkeep.js';
import type { Purge } from '../store/purge.js';
import type { HeldMessages } from './held-messages.js';
import type { OrderedQueues } from './ordered-queues.js';
import type { QueueDeletions } from './queue-deletions.js';

/** Messages looked at in one sweep; while the work queue is longer than this, most that is overdue only waits its turn. */
const SWEEP_LIMIT = 2_000;

/**
 * RabbitMQ that comes back drops every ticket that became due while it was away: its queues are there before its exchanges
 * are (3.10; "at-least-once" keeps them, and holds up their queue for three minutes). So after a new connection messages
 * count as lost early, this long after their time, in ms, and for so long.
 */
const EARLY_GRACE_MS = 3_000;
const EARLY_FOR_MS = 60_000;

export interface SweeperOptions {
  readonly upkeep: MessageUpkeep;
  readonly publisher: TicketPublisher;
  readonly heldMessages: HeldMessages;
  /** What else is to be looked after now and then. */
  readonly chores: readonly (() => Promise<void>)[];
  /** Tickets that wait in the work queue; `undefined` while RabbitMQ is away. */
  readonly backlog: () => Promise<number | undefined>;
  readonly intervalMs: number;
  readonly queues: OrderedQueues;
  readonly deletions: QueueDeletions;
  readonly purge: Purge;
  readonly log: Logger;
}

/** Finds messages whose ticket RabbitMQ has lost (or never got) and gives them a new one; removes old ended messages. */
export class Sweeper {
  private readonly timer: NodeJS.Timeout;
  private stopping = false;
  private earlyUntil = 0;
  private running: Promise<void> | undefined;

  constructor(private readonly options: SweeperOptions) {
    this.timer = setInterval(() => {
      this.running ??= this.run().finally(() => {
        this.running = undefined;
      });
    }, options.intervalMs);
  }

  /** To be called with each new connection: tickets may have been lost with the one before. */
  reconnected(): void {
    this.earlyUntil = performance.now() + EARLY_FOR_MS;
  }

  async stop(): Promise<void> {
    this.stopping = true;
    clearInterval(this.timer);
    await this.running;
  }

  private async run(): Promise<void> {
    const { heldMessages, queues, deletions, purge, chores, log } = this.options;
    for (const chore of chores)
      await chore().catch((err: unknown) => log.warn({ err }, 'queue: a chore failed'));
    try {
      await this.sweep();
      heldMessages.releaseReturned(await queues.holdPaused());
      await heldMessages.repair();
    } catch (err) {
      log.warn({ err }, 'queue: the sweep failed');
    }
    await deletions
      .finish(() => this.stopping)
      .catch((err: unknown) => {
        log.warn({ err }, 'queue: messages of deleted queues were not cancelled yet');
      });
    await purge.run(() => this.stopping);
  }

  private async sweep(): Promise<void> {
    const { log } = this.options;
    for (let found = SWEEP_LIMIT; found === SWEEP_LIMIT && !this.stopping; ) {
      found = await this.sweepSome();
      if (found > 0) log.info({ messages: found }, 'queue: overdue messages get a new ticket');
    }
  }

  /** @returns how many messages got a new ticket */
  private async sweepSome(): Promise<number> {
    const { upkeep, publisher, backlog } = this.options;
    const waiting = await backlog();
    if (waiting === undefined || publisher.unavailable !== undefined) return 0;
    const early = performance.now() < this.earlyUntil;
    const lost =
      waiting > SWEEP_LIMIT
        ? await upkeep.sweepExpired(SWEEP_LIMIT)
        : await upkeep.sweep(SWEEP_LIMIT, early ? EARLY_GRACE_MS : undefined);
    await Promise.all(
      lost.map((ticket) =>
        ticket.failing
          ? publisher.deadLetter(ticket, CONFIRM_MS.inBackground)
          : publisher.publish(ticket, 0, CONFIRM_MS.inBackground),
      ),
    );
    return lost.length;
  }
}
