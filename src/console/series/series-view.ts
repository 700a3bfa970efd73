import { LATENCY_BOUNDS } from '../../lib/latency-histogram.js';
import { emptyTally, STEP_MS, STEPS, type Step, type Tally } from './request-series.js';

type Points = (number | null)[];

interface ServicePoints {
  readonly requests: Points;
  readonly clientErrors: Points;
  readonly failures: Points;
  readonly p50: Points;
  readonly p99: Points;
}

/** The steps of all processes, as the console draws them. */
export interface SeriesView {
  readonly stepMs: number;
  readonly firstStep: number;
  readonly inFlight: Points;
  readonly services: Readonly<Record<string, ServicePoints>>;
}

/**
 * Adds up what each process noted.
 * @param now ms since 1970; the step that it lies in is not over
 * @param after only steps behind this one
 */
export function seriesView(
  processes: readonly (readonly Step[])[],
  now: number,
  after: number | undefined,
): SeriesView {
  const end = Math.floor(now / STEP_MS);
  const first = Math.max(end - STEPS, (after ?? 0) + 1);
  const length = Math.max(0, end - first);
  const inFlight: Points = Array.from({ length }, () => null);
  const tallies = new Map<string, Tally[]>();
  for (const step of processes.flat()) {
    const at = step.number - first;
    if (at < 0 || at >= length) continue;
    inFlight[at] = (inFlight[at] ?? 0) + step.inFlight;
    for (const [service, tally] of step.services) {
      const own = tallies.get(service) ?? Array.from({ length }, emptyTally);
      addTally(own[at] as Tally, tally);
      tallies.set(service, own);
    }
  }
  const services = [...tallies].map(([service, own]) => [service, pointsOf(own)] as const);
  return { stepMs: STEP_MS, firstStep: first, inFlight, services: Object.fromEntries(services) };
}

function addTally(sum: Tally, more: Tally): void {
  sum.requests += more.requests;
  sum.clientErrors += more.clientErrors;
  sum.failures += more.failures;
  more.buckets.forEach((count, i) => {
    sum.buckets[i] = (sum.buckets[i] as number) + count;
  });
}

function pointsOf(tallies: readonly Tally[]): ServicePoints {
  return {
    requests: tallies.map(({ requests }) => requests),
    clientErrors: tallies.map(({ clientErrors }) => clientErrors),
    failures: tallies.map(({ failures }) => failures),
    p50: tallies.map((tally) => quantile(tally, 0.5)),
    p99: tallies.map((tally) => quantile(tally, 0.99)),
  };
}

/** As Prometheus does it: evenly spread within the bucket that it lies in. */
export function quantile({ requests, buckets }: Tally, share: number): number | null {
  if (requests <= 0) return null;
  let rank = share * requests;
  for (let i = 0; i < LATENCY_BOUNDS.length; i += 1) {
    const count = buckets[i] as number;
    const [low, high] = [LATENCY_BOUNDS[i - 1] ?? 0, LATENCY_BOUNDS[i] as number];
    if (rank <= count && count > 0) return low + (high - low) * (rank / count);
    rank -= count;
  }
  return LATENCY_BOUNDS.at(-1) as number;
}
