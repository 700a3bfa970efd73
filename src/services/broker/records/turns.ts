/** Lets one at a time through, in the order of asking. */
export class Turns {
  private readonly waiting: (() => void)[] = [];
  private taken = false;

  /** Resolves to the function that ends the turn, or to `undefined` when `signal` aborts first. */
  take(signal: AbortSignal): Promise<(() => void) | undefined> {
    if (!this.taken) {
      this.taken = true;
      return Promise.resolve(this.turn());
    }
    if (signal.aborted) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const begin = () => {
        signal.removeEventListener('abort', leave);
        resolve(this.turn());
      };
      const leave = () => {
        this.waiting.splice(this.waiting.indexOf(begin), 1);
        resolve(undefined);
      };
      this.waiting.push(begin);
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  private turn(): () => void {
    let over = false;
    return () => {
      if (over) return;
      over = true;
      const next = this.waiting.shift();
      if (next === undefined) this.taken = false;
      else next();
    };
  }
}
