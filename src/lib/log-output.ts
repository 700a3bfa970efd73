import { write, writeSync } from 'node:fs';
import type { DestinationStream } from 'pino';

/** So many characters wait for a reader that takes none; later lines are dropped. */
const MOST_WAITING = 8 * 1024 * 1024;
/** Before a pipe that is full is tried again, in ms. */
const FULL_PAUSE_MS = 20;

/**
 * Writes lines to a file descriptor in the background. What cannot be written (a closed terminal, a full disk, a pipe
 * without a reader) is dropped: a log neither ends the gateway nor holds it up. pino's own destination throws such
 * failures, and when the process exits it tries the same line again without end.
 */
export class LogOutput implements DestinationStream {
  private waiting = '';
  private isWriting = false;
  private readonly listeners = new Set<() => void>();

  constructor(private readonly fd: number) {}

  write(text: string): void {
    if (this.waiting.length < MOST_WAITING) this.waiting += text;
    if (!this.isWriting) this.writeNext();
  }

  /** Resolves when every line is written or dropped, or after `capMs`. */
  settled(capMs: number): Promise<void> {
    if (!this.isWriting) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, capMs);
      this.listeners.add(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** What waits, at once; for when nothing can wait any longer. */
  flush(): void {
    try {
      if (this.waiting !== '') writeSync(this.fd, this.waiting);
    } catch {
      // nobody can be told
    }
    this.waiting = '';
  }

  private writeNext(): void {
    const bytes = Buffer.from(this.waiting);
    this.waiting = '';
    this.isWriting = bytes.length > 0;
    if (this.isWriting) this.writeRest(bytes);
    else {
      for (const tell of this.listeners) tell();
      this.listeners.clear();
    }
  }

  private writeRest(bytes: Buffer): void {
    write(this.fd, bytes, (error, written) => {
      if (error?.code === 'EAGAIN') setTimeout(() => this.writeRest(bytes), FULL_PAUSE_MS).unref();
      else if (error === null && written < bytes.length) this.writeRest(bytes.subarray(written));
      else this.writeNext();
    });
  }
}
