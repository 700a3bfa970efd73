/**
 * Places for transactions that let messages go, of which those of publishes and timers take a few at once: those of 1,000
 * keys would keep all connections. A delivery that has ended waits for nobody: what it lets go under a name goes on at
 * once, with what waits under that name, or all deliveries would stand behind the publishes.
 */
export class ReleasePlaces {
  private taken = 0;
  private readonly waiting = new Map<string, () => void>();

  constructor(private readonly atOnce: number) {}

  /** @param name under which nothing else waits */
  async use<T>(name: string, isUrgent: boolean, work: () => Promise<T>): Promise<T> {
    if (isUrgent || this.taken < this.atOnce) this.taken += 1;
    else await new Promise<void>((resolve) => this.waiting.set(name, resolve));
    try {
      return await work();
    } finally {
      this.taken -= 1;
      const [next] = this.waiting.keys();
      if (next !== undefined && this.taken < this.atOnce) this.expedite(next);
    }
  }

  /** What waits under the name goes on, whether there is a place or not. */
  expedite(name: string): void {
    const go = this.waiting.get(name);
    if (go === undefined) return;
    this.waiting.delete(name);
    this.taken += 1;
    go();
  }
}
