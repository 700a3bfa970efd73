/** Lets one at a time through, in the order of asking. */
export class Mutex {
  private readonly waiting: (() => void)[] = [];
  private held = false;

  /** Resolves to the function that releases it, or to `undefined` when `signal` aborts first. */
  acquire(signal: AbortSignal): Promise<(() => void) | undefined> {
    if (!this.held) {
      this.held = true;
      return Promise.resolve(this.holder());
    }
    if (signal.aborted) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const begin = () => {
        signal.removeEventListener('abort', leave);
        resolve(this.holder());
      };
      const leave = () => {
        this.waiting.splice(this.waiting.indexOf(begin), 1);
        resolve(undefined);
      };
      this.waiting.push(begin);
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  private holder(): () => void {
    let over = false;
    return () => {
      if (over) return;
      over = true;
      const next = this.waiting.shift();
      if (next === undefined) this.held = false;
      else next();
    };
  }
}
