import { type MetricsSnapshot, sumOfCounts } from '../http/monitoring/metrics.js';

/** A worker that has not answered by then is left out of this answer, in ms. */
const COLLECT_MS = 2_000;

interface Collection {
  readonly waiting: Set<number>;
  readonly snapshots: Map<number, MetricsSnapshot>;
  readonly done: () => void;
}

/**
 * Gathers the metrics of the workers. What a dead worker had counted stays in the sum, as far as it was ever told:
 * a counter that falls looks to Prometheus like one that began anew, and all of it would be counted a second time.
 */
export class MetricsCollector {
  private lastId = 0;
  private readonly collections = new Map<number, Collection>();
  /** The latest of each living worker. */
  private readonly latest = new Map<number, MetricsSnapshot>();
  /** The counts of all that are gone; a promise, so that one addition follows the other. */
  private retired: Promise<MetricsSnapshot> = Promise.resolve([]);

  /** @param ask tells the worker with this number to report under an id */
  constructor(private readonly ask: (worker: number, id: number) => void) {}

  collect(workers: readonly number[]): Promise<readonly MetricsSnapshot[]> {
    this.lastId += 1;
    const id = this.lastId;
    return new Promise((resolve) => {
      const snapshots = new Map<number, MetricsSnapshot>();
      const done = () => {
        clearTimeout(timer);
        this.collections.delete(id);
        const living = [...snapshots.values()];
        resolve(this.retired.then((retired) => [retired, ...living]));
      };
      const timer = setTimeout(done, COLLECT_MS);
      this.collections.set(id, { waiting: new Set(workers), snapshots, done });
      if (workers.length === 0) done();
      for (const worker of workers) this.ask(worker, id);
    });
  }

  reported(worker: number, id: number, snapshot: MetricsSnapshot): void {
    this.latest.set(worker, snapshot);
    const collection = this.collections.get(id);
    if (collection === undefined || !collection.waiting.delete(worker)) return;
    collection.snapshots.set(worker, snapshot);
    if (collection.waiting.size === 0) collection.done();
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
    for (const { waiting, snapshots, done } of [...this.collections.values()]) {
      snapshots.delete(worker);
      if (waiting.delete(worker) && waiting.size === 0) done();
    }
  }
}
