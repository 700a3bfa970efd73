interface Next<Change> {
  change: Change;
  readonly done: Promise<void>;
}

/**
 * Makes one run of what is asked for while a run of the same name goes on: it begins when that one ends, so whoever asks
 * is served by a run that begins after the asking.
 */
export class Coalescer<Change> {
  private readonly running = new Map<string, Promise<void>>();
  private readonly next = new Map<string, Next<Change>>();

  /** @param merge what is handed to a run for two that asked for it */
  constructor(private readonly merge: (earlier: Change, later: Change) => Change) {}

  /** Resolves when the run has ended. @param work must not reject; of several that share a run the first one's is taken */
  run(name: string, change: Change, work: (change: Change) => Promise<void>): Promise<void> {
    const waiting = this.next.get(name);
    if (waiting !== undefined) {
      waiting.change = this.merge(waiting.change, change);
      return waiting.done;
    }
    const before = this.running.get(name);
    if (before === undefined) return this.start(name, work(change));
    const next: Next<Change> = {
      change,
      done: before.then(() => {
        this.next.delete(name);
        return this.start(name, work(next.change));
      }),
    };
    this.next.set(name, next);
    return next.done;
  }

  private start(name: string, work: Promise<void>): Promise<void> {
    const done = work.finally(() => {
      if (this.running.get(name) === done) this.running.delete(name);
    });
    this.running.set(name, done);
    return done;
  }
}
