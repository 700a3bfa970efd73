import { VectorBench } from './vector-bench.mjs';

/** Which backends must run, by their names in `compose/backends.mjs`. */
export const backends = ['postgres'];

/**
 * Bulk upserts through the whole gateway against bare node-postgres, with and without HNSW, and the memory they take.
 * @param {{ rounds?: number, seconds?: number }} load
 */
export async function run({ rounds = 3, seconds = 5 }) {
  const bench = await VectorBench.open(10_000);
  try {
    await bench.startGateway({ hnsw: false });
    const bare = await bench.upserts('bulk upsert, no HNSW', 0.7, { rounds, seconds });
    await bench.memory();
    await bench.startGateway({ hnsw: true });
    await bench.fillEach();
    const indexed = await bench.upserts('bulk upsert, HNSW', 0.9, { rounds, seconds });
    return bare && indexed;
  } finally {
    await bench.close();
  }
}
