import { HttpError } from '../../../http/errors.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import type { Command } from '../resp/resp-encoder.js';

export interface DailyQuotaOptions {
  /** Commands a UTC day; `null`: no limit, and nothing is counted. */
  readonly limit: number | null;
  readonly send: <T>(commands: readonly Command[], finish: (replies: RespValue[]) => T) => Promise<T>;
  /** Wall clock, ms since 1970. */
  readonly now: () => number;
}

const DAY_MS = 86_400_000;
/** The count is of no use after its day; two days, so that no clock's difference ends it early. */
const KEPT_SECONDS = 2 * 86_400;

/**
 * The daily request limit of a database over all its gateways. The count is a key of the database: what this process
 * has let through since its last word is added to it, in the same write as the commands themselves, and the answer is the
 * count of all. So the limit costs no round trip, and is overrun by what is in flight at most.
 */
export class DailyQuota {
  private day = -1;
  /** Of all gateways, as Redis last said. */
  private counted = 0;
  private unsent = 0;
  private inFlight = 0;
  private planned = false;

  constructor(private readonly options: DailyQuotaOptions) {}

  get isUnlimited(): boolean {
    return this.options.limit === null;
  }

  /** How many of `wanted` commands may run; they count as used. */
  grant(wanted: number): number {
    const { limit } = this.options;
    if (limit === null) return wanted;
    this.turnDay();
    const left = Math.max(0, limit - this.used);
    const granted = Math.min(wanted, left);
    if (granted > 0) this.add(granted);
    return granted;
  }

  /** Whether all of `wanted` commands may run; none counts when not. */
  grantAll(wanted: number): boolean {
    const { limit } = this.options;
    if (limit === null) return true;
    this.turnDay();
    if (this.used + wanted > limit) return false;
    this.add(wanted);
    return true;
  }

  /** The error text, class word first, for a command beyond the limit. */
  get refusal(): string {
    return `ERR max daily request limit exceeded. Limit: ${this.options.limit}, Usage: ${this.used}`;
  }

  /** The answer to a request beyond the limit: it may come again when the next day begins. */
  exceeded(): HttpError {
    const retryAfter = Math.ceil((DAY_MS - (this.options.now() % DAY_MS)) / 1_000);
    return new HttpError('too_many_requests', this.refusal, { retryAfter });
  }

  private get used(): number {
    return this.counted + this.inFlight + this.unsent;
  }

  private add(count: number): void {
    this.unsent += count;
    if (this.planned) return;
    this.planned = true;
    // planned before the commands that are counted: it runs right before the sessions write
    setImmediate(() => this.report());
  }

  private report(): void {
    this.planned = false;
    const { day, unsent } = this;
    this.unsent = 0;
    this.inFlight += unsent;
    const key = `portico:requests:${new Date(day * DAY_MS).toISOString().slice(0, 10)}`;
    const commands: Command[] = [
      ['INCRBY', key, String(unsent)],
      ['EXPIRE', key, String(KEPT_SECONDS)],
    ];
    this.options
      .send(commands, ([total]) => {
        if (total instanceof RespError) throw new Error(total.text);
        this.counted = day === this.day ? Math.max(this.counted, Number(total)) : this.counted;
      })
      .catch(() => {
        // Redis that cannot be written to runs few commands; they count here at least
        if (day === this.day) this.counted += unsent;
      })
      .finally(() => {
        if (day === this.day) this.inFlight -= unsent;
      });
  }

  private turnDay(): void {
    const day = Math.floor(this.options.now() / DAY_MS);
    if (day === this.day) return;
    this.day = day;
    this.counted = 0;
    this.unsent = 0;
    this.inFlight = 0;
  }
}
