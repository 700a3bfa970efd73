import type { Logger } from '../../lib/logger.js';
import type { MessageUpkeep } from './message-upkeep.js';
import type { TokenPublisher } from './publisher.js';
import type { Turns } from './turns.js';

/** Messages looked at in one sweep; while the work queue is longer than this, what is overdue only waits its turn. */
const SWEEP_LIMIT = 500;
const PURGE_LIMIT = 2_000;
const CONFIRM_MS = 10_000;

export interface SweeperOptions {
  readonly upkeep: MessageUpkeep;
  readonly publisher: TokenPublisher;
  readonly turns: Turns;
  /** What else is to be looked after now and then. */
  readonly chores: readonly (() => Promise<void>)[];
  /** Tokens that wait in the work queue; `undefined` while RabbitMQ is away. */
  readonly backlog: () => Promise<number | undefined>;
  readonly intervalMs: number;
  /** How long ended messages are kept. */
  readonly ages: { readonly finishedMs: number; readonly deadMs: number };
  readonly log: Logger;
}

/** Finds messages whose token RabbitMQ has lost (or never got) and gives them a new one; removes old ended messages. */
export class Sweeper {
  private readonly timer: NodeJS.Timeout;
  private stopping = false;
  private running: Promise<void> | undefined;

  constructor(private readonly options: SweeperOptions) {
    this.timer = setInterval(() => {
      this.running ??= this.run().finally(() => {
        this.running = undefined;
      });
    }, options.intervalMs);
  }

  async stop(): Promise<void> {
    this.stopping = true;
    clearInterval(this.timer);
    await this.running;
  }

  private async run(): Promise<void> {
    const { upkeep, turns, ages, chores, log } = this.options;
    for (const chore of chores)
      await chore().catch((err: unknown) => log.warn({ err }, 'queue: a chore failed'));
    try {
      await this.sweep();
      await turns.repair();
      // as much as came in since the last time, but other work gets its turn between two statements
      for (let removed = PURGE_LIMIT; removed === PURGE_LIMIT && !this.stopping; )
        removed = await upkeep.purge(ages, PURGE_LIMIT);
    } catch (err) {
      log.warn({ err }, 'queue: the sweep failed');
    }
  }

  private async sweep(): Promise<void> {
    const { upkeep, publisher, backlog, log } = this.options;
    const waiting = await backlog();
    if (waiting === undefined || waiting > SWEEP_LIMIT || publisher.unavailable !== undefined) return;
    const lost = await upkeep.sweep(SWEEP_LIMIT);
    if (lost.length === 0) return;
    log.info({ messages: lost.length }, 'queue: overdue messages get a new token');
    await Promise.all(
      lost.map((token) =>
        token.failing ? publisher.bury(token, CONFIRM_MS) : publisher.publish(token, 0, CONFIRM_MS),
      ),
    );
  }
}
