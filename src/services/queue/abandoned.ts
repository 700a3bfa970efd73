import type { Logger } from '../../lib/logger.js';

const EVERY_MS = 1_000;
/** More are not remembered: during a long outage nothing of them can have been written anyway. */
const MOST = 10_000;

export interface AbandonedOptions {
  /** Cancels those of the messages that are stored and were not delivered. @returns their ids */
  readonly cancel: (ids: readonly string[]) => Promise<readonly string[]>;
  /** How long a message is hunted, in ms: less than the sweeper's grace, so that it never gets a token. */
  readonly forMs: number;
  readonly log: Logger;
}

/**
 * Messages that were refused to their senders although Postgres may have them: a stalled one may commit an insert when
 * it goes on. They are cancelled as soon as it answers.
 */
export class Abandoned {
  private readonly until = new Map<string, number>();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly options: AbandonedOptions) {}

  add(id: string): void {
    if (this.until.size >= MOST) return;
    this.until.set(id, performance.now() + this.options.forMs);
    this.timer ??= setInterval(() => void this.cancelAll(), EVERY_MS);
  }

  stop(): void {
    clearInterval(this.timer);
    this.until.clear();
  }

  private async cancelAll(): Promise<void> {
    const now = performance.now();
    for (const [id, until] of this.until) {
      if (until < now) this.until.delete(id);
    }
    if (this.until.size === 0) {
      clearInterval(this.timer);
      this.timer = undefined;
      return;
    }
    try {
      for (const id of await this.options.cancel([...this.until.keys()])) this.until.delete(id);
    } catch (err) {
      this.options.log.debug(
        { err, messages: this.until.size },
        'queue: refused messages are not cancelled yet',
      );
    }
  }
}
