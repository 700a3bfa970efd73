export interface CircuitOptions {
  /** Attempts in a row that waited in vain until it opens; 0: it never does. */
  readonly failures: number;
  /** From its opening to the first probe, and from one probe to the next, in ms. */
  readonly openMs: number;
}

export type CircuitState = 'closed' | 'open' | 'half-open';

/**
 * The circuit breaker of one destination. Only attempts that waited for an answer in vain count: a destination that
 * refuses at once, or answers with an error, takes nobody's place. Open, it lets one probe through each `openMs`, whether
 * the one before has ended or not: a probe may hang for minutes at a destination that is well again. Any answer closes it.
 */
export class Circuit {
  private consecutive = 0;
  private probes = 0;
  private since: number | undefined;
  private probeAt = 0;

  constructor(private readonly options: CircuitOptions) {}

  get state(): CircuitState {
    if (this.since === undefined) return 'closed';
    return this.probes > 0 ? 'half-open' : 'open';
  }

  /** Attempts in a row without an answer. */
  get failures(): number {
    return this.consecutive;
  }

  /** When it opened, on the caller's clock; `undefined` while it is closed. */
  get openSince(): number | undefined {
    return this.since;
  }

  /** When the next probe may begin; it means nothing while it is closed. */
  get nextProbeAt(): number {
    return this.probeAt;
  }

  probeBegins(now: number): void {
    this.probes += 1;
    this.probeAt = now + this.options.openMs;
  }

  /** A probe ended, whatever came of it. */
  probeEnded(): void {
    this.probes -= 1;
  }

  /** @returns whether that closed it */
  answered(): boolean {
    this.consecutive = 0;
    if (this.since === undefined) return false;
    this.since = undefined;
    return true;
  }

  /** An attempt waited in vain. @returns whether that opened it */
  unanswered(now: number): boolean {
    const { failures, openMs } = this.options;
    this.consecutive += 1;
    if (failures === 0 || this.since !== undefined || this.consecutive < failures) return false;
    this.since = now;
    this.probeAt = now + openMs;
    return true;
  }
}
