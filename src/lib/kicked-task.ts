import { backoffDelay, DEFAULT_BACKOFF } from './backoff.js';
import type { ReleaseRegistry } from './lifecycle.js';
import type { Logger } from './logger.js';

export interface KickedTaskOptions {
  /** In the log. */
  readonly name: string;
  /**
   * Looks what there is to do and does it.
   * @returns after how many ms it wants to look again; 0: all is done
   */
  readonly work: (signal: AbortSignal) => Promise<number>;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
}

/** Background work that runs when somebody says that there may be some, never twice at once, and again after a failure. */
export class KickedTask {
  private readonly stopped = new AbortController();
  private wanted = false;
  private running: Promise<void> | undefined;
  private wake: (() => void) | undefined;

  constructor(private readonly options: KickedTaskOptions) {
    options.lifecycle.onStop(options.name, async () => {
      this.stopped.abort();
      this.wake?.();
      await this.running;
    });
  }

  /** There may be something to do. */
  kick(): void {
    this.wanted = true;
    this.running ??= this.run().finally(() => {
      this.running = undefined;
      // asked for between the last look and here
      if (this.wanted && !this.stopped.signal.aborted) this.kick();
    });
  }

  private async run(): Promise<void> {
    const { work, log, name } = this.options;
    for (let failures = 0; this.wanted && !this.stopped.signal.aborted; ) {
      this.wanted = false;
      let pause = 0;
      try {
        pause = await work(this.stopped.signal);
        failures = 0;
      } catch (err) {
        if (this.stopped.signal.aborted) return;
        pause = backoffDelay(failures++, DEFAULT_BACKOFF);
        log.warn({ err }, `${name}: failed, trying again`);
      }
      if (pause > 0) {
        this.wanted = true;
        await this.sleep(pause);
      }
    }
  }

  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
