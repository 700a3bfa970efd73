import type { AuditEntry } from '../http/audit.js';
import type { ReleaseRegistry } from '../lib/lifecycle.js';
import type { Logger } from '../lib/logger.js';
import type { AccessStore } from './access-store.js';

/** Entries are written together, so long after the first, in ms. */
const GATHER_MS = 200;
const RETRY_MS = 2_000;
const BATCH = 500;
/** Entries that wait while the store does not answer; the oldest go first. Each has its line in the log. */
const MOST_WAITING = 10_000;

/** Every destructive or administrative call, as a line of the log at once and in the store a little later. */
export class AuditLog {
  private waiting: AuditEntry[] = [];
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;
  private dropped = 0;

  constructor(
    private readonly store: AccessStore,
    private readonly log: Logger,
    lifecycle: ReleaseRegistry,
  ) {
    lifecycle.onStop('audit log', async () => {
      this.stopped = true;
      clearTimeout(this.timer);
      await this.flush();
    });
  }

  record(entry: AuditEntry): void {
    this.log.info({ audit: entry }, 'audit');
    this.waiting.push(entry);
    if (this.waiting.length > MOST_WAITING) {
      this.waiting.shift();
      this.dropped++;
    }
    this.timer ??= this.flushIn(GATHER_MS);
  }

  private flushIn(ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      void this.flush().then((isDone) => {
        this.timer = isDone || this.stopped ? undefined : this.flushIn(RETRY_MS);
      });
    }, ms).unref();
  }

  private async flush(): Promise<boolean> {
    while (this.waiting.length > 0) {
      const batch = this.waiting.slice(0, BATCH);
      try {
        await this.store.appendAudit(batch);
      } catch (err) {
        this.log.warn({ err, waiting: this.waiting.length }, 'the audit log cannot be written');
        return false;
      }
      const written = new Set(batch);
      this.waiting = this.waiting.filter((entry) => !written.has(entry));
    }
    if (this.dropped > 0) this.log.warn({ dropped: this.dropped }, 'entries of the audit log were dropped');
    this.dropped = 0;
    return true;
  }
}
