/** Components of every vector. */
export const DIMENSION = 384;
const LATENT = 128;
const CENTRES = 1_000;
const HIDDEN = 128;

/**
 * Clustered vectors of unit length, as embeddings are (local intrinsic dimension about 23; independent Gaussians have 120, and
 * no index looks good on them): centres with weights k^-0.8 in 128 dimensions, through tanh(z W1) W2, plus a tenth of noise.
 * @param {number} count
 * @param {number} seed
 * @returns {Float32Array} count x 384
 */
export function clusteredVectors(count, seed) {
  const random = generator(seed);
  const normal = normals(random);
  const matrix = (rows, columns, scale) =>
    Float32Array.from({ length: rows * columns }, () => normal() * scale);
  const centres = matrix(CENTRES, LATENT, 1);
  const first = matrix(LATENT, HIDDEN, 1 / Math.sqrt(LATENT));
  const second = matrix(HIDDEN, DIMENSION, 1 / Math.sqrt(HIDDEN));
  const cumulated = new Float64Array(CENTRES);
  for (let k = 0, sum = 0; k < CENTRES; k++) cumulated[k] = sum += (k + 1) ** -0.8;
  const vectors = new Float32Array(count * DIMENSION);
  const z = new Float32Array(LATENT);
  for (let n = 0; n < count; n++) {
    const place = random() * cumulated[CENTRES - 1];
    const centre = cumulated.findIndex((weight) => weight > place);
    for (let i = 0; i < LATENT; i++) z[i] = centres[centre * LATENT + i] + normal();
    const hidden = product(z, first, HIDDEN).map(Math.tanh);
    vectors.set(product(hidden, second, DIMENSION), n * DIMENSION);
  }
  const noise = 0.1 * deviation(vectors);
  for (let i = 0; i < vectors.length; i++) vectors[i] += noise * normal();
  for (let n = 0; n < count; n++) normalise(vectors.subarray(n * DIMENSION, (n + 1) * DIMENSION));
  return vectors;
}

/** Numbers in [0, 1) from a fixed seed (mulberry32). */
export function generator(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Standard normal numbers. @param {() => number} random */
export function normals(random) {
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function product(row, matrix, columns) {
  const result = new Float32Array(columns);
  for (let i = 0; i < row.length; i++) {
    const factor = row[i];
    for (let k = 0; k < columns; k++) result[k] += factor * matrix[i * columns + k];
  }
  return result;
}

function deviation(values) {
  let sum = 0;
  let squares = 0;
  for (const value of values) {
    sum += value;
    squares += value * value;
  }
  return Math.sqrt(squares / values.length - (sum / values.length) ** 2);
}

export function normalise(vector) {
  const length = Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
  for (let i = 0; i < vector.length; i++) vector[i] /= length;
}

/**
 * The `k` greatest inner products (of unit vectors: cosines) of each query, least of them first out.
 * @param {(n: number) => boolean} matches which vectors count
 * @returns {Float32Array[]} their values, descending; -2 where fewer than `k` match
 */
export function nearestProducts(vectors, queries, k, matches = () => true) {
  const dimension = queries[0].length;
  const count = vectors.length / dimension;
  return queries.map((query) => {
    const best = new Float32Array(k).fill(-2);
    for (let n = 0; n < count; n++) {
      if (!matches(n)) continue;
      let sum = 0;
      for (let i = 0, at = n * dimension; i < dimension; i++) sum += query[i] * vectors[at + i];
      if (sum <= best[k - 1]) continue;
      let place = k - 1;
      while (place > 0 && best[place - 1] < sum) {
        best[place] = best[place - 1];
        place--;
      }
      best[place] = sum;
    }
    return best;
  });
}
