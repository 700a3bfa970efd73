import { HttpError } from '../errors.js';
import type { Backend } from '../instance.js';

/** A check is not repeated sooner than this, in ms, however often it is asked for. */
const CACHE_MS = 1_000;
/** A backend that has not answered by then counts as down, in ms. */
const CHECK_MS = 1_500;

/** How often backends are asked while the gateway starts, in ms. */
const START_POLL_MS = 50;

export interface HealthTarget {
  readonly service: string;
  readonly instance: string;
  readonly backend: Backend;
}

export interface HealthState {
  readonly service: string;
  readonly instance: string;
  readonly backend: string;
  readonly up: boolean;
  /** Why it is down. */
  readonly reason?: string;
}

interface Cached {
  at: number;
  state: Promise<HealthState>;
}

/** Asks backends whether they answer; concurrent and frequent callers share one check. */
export class Health {
  private readonly cache = new Map<HealthTarget, Cached>();
  private readonly missing: Map<string, string>;

  /** @param missing by service: why its backend was not there when the gateway was started */
  constructor(
    private readonly targets: readonly HealthTarget[],
    missing: Iterable<readonly [string, string]> = [],
    private readonly now: () => number = () => performance.now(),
  ) {
    this.missing = new Map(missing);
  }

  async states(service?: string): Promise<HealthState[]> {
    const wanted = service === undefined ? this.targets : this.targets.filter((t) => t.service === service);
    const states = await Promise.all(wanted.map((target) => this.state(target)));
    this.forgetMissing(states);
    return states;
  }

  /** Why the backend of `service` was not there at the start, until it was there for once. */
  missingReason(service: string): string | undefined {
    return this.missing.get(service);
  }

  /** Resolves when every backend answers, or after `capMs`. */
  async whenUp(capMs: number): Promise<void> {
    const end = this.now() + capMs;
    for (;;) {
      const states = await Promise.all(this.targets.map(check));
      this.forgetMissing(states);
      if (states.every(({ up }) => up) || this.now() >= end) return;
      await new Promise((resolve) => setTimeout(resolve, START_POLL_MS));
    }
  }

  private forgetMissing(states: readonly HealthState[]): void {
    for (const service of this.missing.keys()) {
      const own = states.filter((state) => state.service === service);
      if (own.length > 0 && own.every(({ up }) => up)) this.missing.delete(service);
    }
  }

  private state(target: HealthTarget): Promise<HealthState> {
    const cached = this.cache.get(target);
    if (cached !== undefined && this.now() - cached.at < CACHE_MS) return cached.state;
    const state = check(target);
    this.cache.set(target, { at: this.now(), state });
    return state;
  }
}

async function check({ service, instance, backend }: HealthTarget): Promise<HealthState> {
  const about = { service, instance, backend: backend.name };
  const signal = AbortSignal.timeout(CHECK_MS);
  const late = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () =>
      reject(new HttpError('timeout', `no answer within ${CHECK_MS} ms`)),
    );
  });
  try {
    await Promise.race([backend.check(signal), late]);
    return { ...about, up: true };
  } catch (error) {
    return { ...about, up: false, reason: shortReason(error) };
  }
}

/** One line for operators: an HttpError's own words or a system error's code, never free text of a driver. */
function shortReason(error: unknown): string {
  if (error instanceof HttpError) return error.message;
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? `does not answer (${code})` : 'does not answer';
}
