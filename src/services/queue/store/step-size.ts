import { isTimeout } from '../errors.js';

/** Shortest and longest time that a step should take, in ms: a statement may take 1,300. */
const QUICK_MS = 100;
const SLOW_MS = 400;
/** Smaller pieces of one step are not tried for longer than this, in ms. */
const TRIES_MS = 5_000;

/**
 * How many rows one statement of a long piece of work takes: rows differ in size by a factor of a million, and only their
 * time tells. It halves after a statement that was slow or was ended, and doubles after a quick one.
 */
export class StepSize {
  private rows: number;

  constructor(private readonly most: number) {
    this.rows = most;
  }

  get size(): number {
    return this.rows;
  }

  /** @param ms that a step of this size took */
  took(ms: number): void {
    if (ms > SLOW_MS) this.halve();
    else if (ms < QUICK_MS) this.rows = Math.min(this.most, this.rows * 2);
  }

  /**
   * Does a step, which is told how many rows it may take. One that the database ended before it was done is tried again
   * with half as many: what takes 80 ms on an idle machine may take a starved one longer than a statement may.
   */
  async run<T>(step: (rows: number) => Promise<T>): Promise<T> {
    const begun = performance.now();
    for (let now = begun; ; now = performance.now()) {
      try {
        const result = await step(this.rows);
        this.took(performance.now() - now);
        return result;
      } catch (error) {
        if (!isTimeout(error) || this.rows === 1 || performance.now() - begun > TRIES_MS) throw error;
        this.halve();
      }
    }
  }

  /** A step was ended before it was done. */
  halve(): void {
    this.rows = Math.max(1, Math.floor(this.rows / 2));
  }
}
