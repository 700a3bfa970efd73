/** Components that were read from a request's bytes as float32, without a JavaScript number each. */
export class LiftedVector {
  constructor(
    private readonly store: { readonly floats: Float32Array },
    private readonly start: number,
    readonly length: number,
  ) {}

  get components(): Float32Array {
    return this.store.floats.subarray(this.start, this.start + this.length);
  }

  toJSON(): number[] {
    return Array.from(this.components);
  }
}

/** Components as JSON gave them, or lifted. */
export type Components = readonly unknown[] | LiftedVector;
