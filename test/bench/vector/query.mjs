import { VectorBench } from './bench.mjs';

/** Which backends must run, by their names in `compose/backends/backends.mjs`. */
export const backends = ['postgres'];

/**
 * Queries through the whole gateway against bare node-postgres, with the recall at the same settings.
 * @param {{ rounds?: number, seconds?: number, vectors?: number }} load
 */
export async function run({ rounds = 3, seconds = 5, vectors = 100_000 }) {
  const bench = await VectorBench.open(vectors);
  try {
    await bench.startGateway({ hnsw: false });
    await bench.fill();
    await bench.startGateway({ hnsw: true });
    await bench.waitForHnsw(['']);
    await bench.queries('query, no filter', 0.9, { rounds, seconds });
    await bench.recall('no filter', 0.97, {}, () => true);
    await bench.recall('1 % filter', 0.99, { filter: "tag = 't7'" }, (n) => n % 100 === 7);
    await bench.recall('10 % filter', 0.95, { filter: 'cat = 3' }, (n) => n % 10 === 3);
    return true;
  } finally {
    await bench.close();
  }
}
