import { type MetricsSnapshot, sumOfCounts } from '../http/monitoring/metrics.js';
import { Collector } from './collector.js';

/**
 * Gathers the metrics of the workers. What a dead worker had counted stays in the sum, as far as it was ever told:
 * a counter that falls looks to Prometheus like one that began anew, and all of it would be counted a second time.
 */
export class MetricsCollector {
  private readonly collector: Collector<MetricsSnapshot>;
  /** The latest of each living worker. */
  private readonly latest = new Map<number, MetricsSnapshot>();
  /** The counts of all that are gone; a promise, so that one addition follows the other. */
  private retired: Promise<MetricsSnapshot> = Promise.resolve([]);

  /** @param ask tells the worker with this number to report under an id */
  constructor(ask: (worker: number, id: number) => void) {
    this.collector = new Collector(ask);
  }

  async collect(workers: readonly number[]): Promise<readonly MetricsSnapshot[]> {
    const living = await this.collector.collect(workers);
    return [await this.retired, ...living];
  }

  reported(worker: number, id: number, snapshot: MetricsSnapshot): void {
    this.latest.set(worker, snapshot);
    this.collector.reported(worker, id, snapshot);
  }

  /** What a worker reports before it exits. */
  final(worker: number, snapshot: MetricsSnapshot): void {
    this.latest.set(worker, snapshot);
  }

  /** The worker is gone: nobody waits for it any more, and what it counted is kept. */
  gone(worker: number): void {
    const last = this.latest.get(worker);
    this.latest.delete(worker);
    if (last !== undefined) this.retired = this.retired.then((retired) => sumOfCounts([retired, last]));
    this.collector.gone(worker);
  }
}
