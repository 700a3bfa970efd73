import { types } from 'node:util';
import type { Logger } from './logger.js';
import { within } from './within.js';

type Release = () => void | Promise<void>;

interface Registered {
  name: string;
  release: Release;
  capMs: number;
}

/** Where an acquirer of a timer, socket, pool or consumer registers how it is given back. */
export interface ReleaseRegistry {
  /** @param capMs the stop goes on after so many ms even when `release` has not ended */
  onStop(name: string, release: Release, capMs?: number): void;
}

/** Releases run last-in first-out, each within its cap; a failed or late one is reported and does not stop the others. */
export class Lifecycle implements ReleaseRegistry {
  private readonly registered: Registered[] = [];
  private stopping: Promise<Error[]> | undefined;

  constructor(private readonly log: Logger) {}

  onStop(name: string, release: Release, capMs = 5_000): void {
    this.registered.push({ name, release, capMs });
  }

  /** Runs every release once, however often it is called. Resolves to the errors met. */
  stop(): Promise<Error[]> {
    this.stopping ??= this.releaseAll();
    return this.stopping;
  }

  private async releaseAll(): Promise<Error[]> {
    const errors: Error[] = [];
    for (let entry = this.registered.pop(); entry !== undefined; entry = this.registered.pop()) {
      const error = await settleWithin(entry);
      if (error === undefined) continue;
      errors.push(error);
      this.log.error({ err: error, release: entry.name }, 'release failed');
    }
    return errors;
  }
}

async function settleWithin({ name, release, capMs }: Registered): Promise<Error | undefined> {
  const settled = Promise.resolve().then(release);
  try {
    await within(capMs, settled, () => new Error(`${name} did not end within ${capMs} ms`));
    return undefined;
  } catch (error) {
    return types.isNativeError(error) ? error : new Error(String(error));
  }
}
