/** Width of a latency bucket in microseconds, and how many there are (the last takes all that is slower). */
const BUCKET_US = 20;
const BUCKETS = 50_000;

/** Latencies of one or more runs. */
export class Latencies {
  #counts = new Uint32Array(BUCKETS);
  total = 0;

  /** @param {number} microseconds */
  add(microseconds) {
    this.#counts[Math.min(BUCKETS - 1, Math.floor(microseconds / BUCKET_US))] += 1;
    this.total += 1;
  }

  /** @param {Latencies} other */
  merge(other) {
    for (let i = 0; i < BUCKETS; i++) this.#counts[i] += other.#counts[i];
    this.total += other.total;
  }

  /** Milliseconds below which the share `quantile` of all requests ended. @param {number} quantile */
  quantile(quantile) {
    let rest = this.total * quantile;
    for (let i = 0; i < BUCKETS; i++) {
      rest -= this.#counts[i];
      if (rest <= 0) return ((i + 1) * BUCKET_US) / 1_000;
    }
    return 0;
  }
}
