/** A bounded number of things at once; the others wait in the order in which they came. */
export class Slots {
  private free: number;
  private readonly waiting: ((granted: boolean) => void)[] = [];
  private closed = false;

  constructor(count: number) {
    this.free = count;
  }

  /** Resolves to whether a slot was had, which `leave` gives back; false once they are closed. */
  enter(): Promise<boolean> {
    if (this.closed) return Promise.resolve(false);
    if (this.free > 0) {
      this.free -= 1;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  leave(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.free += 1;
    else next(true);
  }

  /** Nobody gets a slot any more, and nobody waits for one. */
  close(): void {
    this.closed = true;
    for (const tell of this.waiting.splice(0)) tell(false);
  }
}
