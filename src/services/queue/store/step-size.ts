/** Shortest and longest time that a step should take, in ms: a statement may take 1,300. */
const QUICK_MS = 100;
const SLOW_MS = 400;

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

  /** A step was ended before it was done. */
  halve(): void {
    this.rows = Math.max(1, Math.floor(this.rows / 2));
  }
}
