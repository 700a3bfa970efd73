import { HttpError } from '../../http/errors.js';

export interface QuotaSettings {
  readonly recordsPerSecond: number | null;
  readonly bytesPerSecond: number | null;
}

/** What is left of an allowance that grows with time, up to that of one second. Below 0 it is owed. */
class Allowance {
  private left: number;
  private at: number;

  constructor(
    private readonly perSecond: number,
    private readonly now: () => number,
  ) {
    this.left = perSecond;
    this.at = now();
  }

  /** Seconds until nothing is owed; 0: more may be spent. */
  get wait(): number {
    const now = this.now();
    this.left = Math.min(this.perSecond, this.left + ((now - this.at) / 1_000) * this.perSecond);
    this.at = now;
    return this.left > 0 ? 0 : -this.left / this.perSecond;
  }

  spend(amount: number): void {
    this.left -= amount;
  }
}

/**
 * Records and bytes a second that a user may write and read here. A request that finds something left is served
 * whatever it takes, since what a read takes is known behind it; what it took too much is waited for by those that follow.
 */
export class Quota {
  private readonly records: Allowance | undefined;
  private readonly bytes: Allowance | undefined;

  /** @param now in ms */
  constructor(
    { recordsPerSecond, bytesPerSecond }: QuotaSettings,
    now: () => number = performance.now.bind(performance),
  ) {
    this.records = recordsPerSecond === null ? undefined : new Allowance(recordsPerSecond, now);
    this.bytes = bytesPerSecond === null ? undefined : new Allowance(bytesPerSecond, now);
  }

  /** @returns undefined where there is nothing to keep to */
  static of(settings: QuotaSettings): Quota | undefined {
    const { recordsPerSecond, bytesPerSecond } = settings;
    return recordsPerSecond === null && bytesPerSecond === null ? undefined : new Quota(settings);
  }

  /** @throws HttpError 429 while something is owed */
  check(): void {
    const [records, bytes] = [this.records?.wait ?? 0, this.bytes?.wait ?? 0];
    if (records === 0 && bytes === 0) return;
    const what = records >= bytes ? 'recordsPerSecond' : 'bytesPerSecond';
    throw new HttpError('too_many_requests', `This user has reached its quota (${what}).`, {
      retryAfter: Math.max(records, bytes),
    });
  }

  spend(records: number, bytes: number): void {
    this.records?.spend(records);
    this.bytes?.spend(bytes);
  }
}
