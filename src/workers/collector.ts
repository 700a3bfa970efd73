/** A worker that has not answered by then is left out of this answer, in ms. */
const COLLECT_MS = 2_000;

interface Collection<Part> {
  readonly waiting: Set<number>;
  readonly parts: Map<number, Part>;
  readonly done: () => void;
}

/** Asks all workers for the same and waits until each has answered, is gone or is late. */
export class Collector<Part> {
  private lastId = 0;
  private readonly collections = new Map<number, Collection<Part>>();

  /** @param ask tells the worker with this number to report under an id */
  constructor(private readonly ask: (worker: number, id: number) => void) {}

  collect(workers: readonly number[]): Promise<readonly Part[]> {
    this.lastId += 1;
    const id = this.lastId;
    return new Promise((resolve) => {
      const parts = new Map<number, Part>();
      const done = () => {
        clearTimeout(timer);
        this.collections.delete(id);
        resolve([...parts.values()]);
      };
      const timer = setTimeout(done, COLLECT_MS);
      this.collections.set(id, { waiting: new Set(workers), parts, done });
      if (workers.length === 0) done();
      for (const worker of workers) this.ask(worker, id);
    });
  }

  reported(worker: number, id: number, part: Part): void {
    const collection = this.collections.get(id);
    if (collection === undefined || !collection.waiting.delete(worker)) return;
    collection.parts.set(worker, part);
    if (collection.waiting.size === 0) collection.done();
  }

  /** Nobody waits for it any more, and what it answered does not count. */
  gone(worker: number): void {
    for (const { waiting, parts, done } of [...this.collections.values()]) {
      parts.delete(worker);
      if (waiting.delete(worker) && waiting.size === 0) done();
    }
  }
}
