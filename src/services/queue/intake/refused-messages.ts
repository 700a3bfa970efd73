import type { Logger } from '../../../lib/logger.js';

const EVERY_MS = 1_000;
/** More are not remembered: during a long outage nothing of them can have been written anyway. */
const MOST = 10_000;

export interface RefusedMessagesOptions {
  /** Cancels those of the messages that are stored and were not delivered. @returns their ids */
  readonly cancel: (ids: readonly string[]) => Promise<readonly { readonly id: string }[]>;
  /** How long a message is looked for, in ms: less than the sweeper's grace, so that it never gets a ticket. */
  readonly forMs: number;
  readonly log: Logger;
}

/**
 * Messages that were refused to their senders although Postgres may have them: a stalled one may commit an insert when
 * it goes on. They are cancelled as soon as it answers.
 */
export class RefusedMessages {
  private readonly groups = new Map<readonly string[], number>();
  private timer: NodeJS.Timeout | undefined;
  private working = false;

  constructor(private readonly options: RefusedMessagesOptions) {}

  /** @param ids of one publish: they are cancelled together */
  add(ids: readonly string[]): void {
    if (this.groups.size >= MOST) return;
    this.groups.set(ids, performance.now() + this.options.forMs);
    this.timer ??= setInterval(() => void this.cancelAll(), EVERY_MS);
  }

  stop(): void {
    clearInterval(this.timer);
    this.groups.clear();
  }

  private async cancelAll(): Promise<void> {
    if (this.working) return;
    const now = performance.now();
    for (const [ids, until] of this.groups) {
      if (until < now) this.groups.delete(ids);
    }
    if (this.groups.size === 0) {
      clearInterval(this.timer);
      this.timer = undefined;
      return;
    }
    this.working = true;
    try {
      for (const ids of this.groups.keys())
        if ((await this.options.cancel(ids)).length > 0) this.groups.delete(ids);
    } catch (err) {
      this.options.log.debug(
        { err, publishes: this.groups.size },
        'queue: refused messages are not cancelled yet',
      );
    } finally {
      this.working = false;
    }
  }
}
