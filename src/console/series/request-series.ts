import type { RequestHistogram } from '../../http/monitoring/request-histogram.js';
import { LATENCY_BOUNDS } from '../../lib/latency-histogram.js';

/** Width of a step, in ms. */
export const STEP_MS = 5_000;
/** 15 minutes. */
export const STEPS = 180;

/** What one service did in one step. */
export interface Tally {
  requests: number;
  clientErrors: number;
  failures: number;
  /** Requests by the bounds of the latency histogram. */
  readonly buckets: Float64Array;
}

/** What one process did in one step. */
export interface Step {
  /** Its number: ms since 1970 divided by `STEP_MS`. */
  readonly number: number;
  readonly inFlight: number;
  readonly services: ReadonlyMap<string, Tally>;
}

const BUCKETS = LATENCY_BOUNDS.length + 1;

export function emptyTally(): Tally {
  return { requests: 0, clientErrors: 0, failures: 0, buckets: new Float64Array(BUCKETS) };
}

/**
 * The last steps of one process: every five seconds it is noted by how much the histograms of the metrics have grown, so a
 * request costs nothing more. Some 150 kB however many requests there are.
 */
export class RequestSeries {
  private readonly kept: Step[] = [];
  private before = new Map<string, Tally>();
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly requests: RequestHistogram,
    private readonly inFlight: () => number,
    private readonly now: () => number,
  ) {
    this.timer = setInterval(() => this.note(), STEP_MS);
    this.timer.unref();
  }

  /** Notes what was done since the last note. */
  note(): void {
    const total = new Map<string, Tally>();
    this.requests.each((operation, status, histogram) => {
      const service = operation.split('.', 1)[0] ?? '';
      const tally = total.get(service) ?? emptyTally();
      const before = sumOf(tally.buckets);
      histogram.addTo(tally.buckets);
      const own = sumOf(tally.buckets) - before;
      tally.requests += own;
      if (status.startsWith('4')) tally.clientErrors += own;
      else if (status.startsWith('5')) tally.failures += own;
      total.set(service, tally);
    });
    const services = new Map<string, Tally>();
    for (const [service, tally] of total) {
      const grown = difference(tally, this.before.get(service));
      if (grown.requests > 0) services.set(service, grown);
    }
    this.before = total;
    const number = Math.floor(this.now() / STEP_MS);
    this.kept.push({ number, inFlight: this.inFlight(), services });
    if (this.kept.length > STEPS) this.kept.shift();
  }

  steps(): readonly Step[] {
    return this.kept;
  }

  release(): void {
    clearInterval(this.timer);
  }
}

function sumOf(counts: Float64Array): number {
  let sum = 0;
  for (const count of counts) sum += count;
  return sum;
}

function difference(now: Tally, before: Tally | undefined): Tally {
  if (before === undefined) return now;
  return {
    requests: now.requests - before.requests,
    clientErrors: now.clientErrors - before.clientErrors,
    failures: now.failures - before.failures,
    buckets: now.buckets.map((count, i) => count - (before.buckets[i] as number)),
  };
}
