import { VectorBench } from './bench.mjs';

/** Which backends must run, by their names in `compose/backends/backends.mjs`. */
export const backends = ['postgres'];

/**
 * Bulk upserts through the whole gateway against bare node-postgres, with and without HNSW, and the memory they take.
 * @param {{ rounds?: number, seconds?: number, requests?: number }} load `requests`: how many in a row the memory is watched for
 */
export async function run({ rounds = 3, seconds = 5, requests = 200 }) {
  await withBench(async (bench) => {
    await bench.startGateway({ hnsw: false });
    await bench.upserts('bulk upsert, no HNSW', 0.7, { rounds, seconds });
    await bench.memory(requests);
  });
  // of its own: a graph of the million records of the other would take many minutes
  await withBench(async (bench) => {
    await bench.startGateway({ hnsw: true });
    await bench.fillEach();
    await bench.upserts('bulk upsert, HNSW', 0.9, { rounds, seconds });
  });
  return true;
}

async function withBench(work) {
  const bench = await VectorBench.open(10_000);
  try {
    await work(bench);
  } finally {
    await bench.close();
  }
}
