import type { Logger } from '../../../lib/logger.js';
import type { ClaimedMessage } from '../message/message.js';

/** Keeps the claims of messages that are being delivered alive: all of them with one statement, three times a lease. */
export class LeaseKeeper {
  private readonly held = new Set<ClaimedMessage>();
  private readonly timer: NodeJS.Timeout;
  private renewing = false;

  constructor(
    private readonly renew: (held: readonly ClaimedMessage[]) => Promise<void>,
    leaseMs: number,
    private readonly log: Logger,
  ) {
    this.timer = setInterval(() => void this.renewAll(), leaseMs / 3);
  }

  hold(message: ClaimedMessage): void {
    this.held.add(message);
  }

  drop(message: ClaimedMessage): void {
    this.held.delete(message);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private async renewAll(): Promise<void> {
    if (this.held.size === 0 || this.renewing) return;
    this.renewing = true;
    try {
      await this.renew([...this.held]);
    } catch (err) {
      this.log.warn({ err, held: this.held.size }, 'queue: leases could not be renewed');
    } finally {
      this.renewing = false;
    }
  }
}
