import { printGoal, printTable } from '../frame.mjs';
import { nearestProducts } from './data.mjs';
import { VectorGateway } from './gateway.mjs';
import { distances, duplicates, languages } from './recall-data.mjs';

/** Which backends must run, by their names in `compose/backends/backends.mjs`. */
export const backends = ['postgres'];

const TOP_KS = [10, 100, 1_000];
/** Each query is sent so often; the quickest counts, so that what else the machine does is left out. */
const SENT = 3;
/** Scores are float32 of sums in another order. */
const ROUNDING = 1e-5;

const GOAL_RECALL = 0.95;
const GOAL_TIME = 1.2;

/**
 * Recall and time of queries whose filters follow the vectors or go against them, and of many equal vectors, beside the exact
 * query in the same run. True neighbours are computed here.
 * @param {{ seed?: number, requests?: number }} load `requests`: queries of a row
 * @returns {Promise<boolean>} whether no reply was wrong; a missed goal is printed, no failure
 */
export async function run({ seed = 20_260_801, requests = 20 }) {
  const common = { seed, queriesPerRow: requests };
  const sets = [
    () => languages(common),
    () => distances(common),
    () => duplicates({ ...common, equal: 2_000, groups: 1 }),
    () => duplicates({ ...common, equal: 5_000, groups: 1 }),
    () => duplicates({ ...common, equal: 5_000, groups: 50 }),
  ];
  let right = true;
  for (const make of sets) right = (await table(make())) && right;
  const bits = { quantisation: 'binary' };
  for (const hnsw of [{}, bits])
    right = (await table(languages({ ...common, dimension: 768, count: 10_000 }), hnsw)) && right;
  return right;
}

/**
 * @param {import('./recall-data.mjs').DataSet} set
 * @param {object} [hnsw] settings of the graph
 */
async function table(set, hnsw = {}) {
  const gateway = await VectorGateway.open();
  try {
    await gateway.start({ dimension: set.dimension, hnsw: { buildMemory: 256 * 1024 * 1024, ...hnsw } });
    const count = set.vectors.length / set.dimension;
    await gateway.call('/graph', { defer: true });
    await gateway.fill('', count, (n) => ({
      id: String(n),
      vector: [...set.vectors.subarray(n * set.dimension, (n + 1) * set.dimension)],
      metadata: set.metadataOf(n),
    }));
    await gateway.call('/graph', { defer: false });
    await gateway.waitForHnsw(['']);
    const { bytes } = await gateway.graphs();
    const results = [];
    for (const row of set.rows) for (const topK of TOP_KS) results.push(await judge(gateway, set, row, topK));
    console.log(
      `\n${set.title}; ${set.rows[0].queries.length} queries a row, of ${SENT} times each the quickest; graph ${hnsw.quantisation ?? 'of vectors'}, ${(bytes / 2 ** 20).toFixed(1)} MiB`,
    );
    printTable(results.map(cells));
    const least = Math.min(...results.map(({ recall }) => recall));
    const slowest = Math.max(...results.map(({ ms, exactMs }) => ms / exactMs));
    printGoal(`recall of every row at least ${GOAL_RECALL}`, least >= GOAL_RECALL, least.toFixed(3));
    printGoal(
      `no row slower than ${GOAL_TIME} times exact`,
      slowest <= GOAL_TIME,
      `${slowest.toFixed(2)} times`,
    );
    const wrong = results.reduce((sum, result) => sum + result.wrong, 0);
    if (wrong > 0) console.log(`there were ${wrong} WRONG replies`);
    return wrong === 0;
  } finally {
    await gateway.close();
  }
}

function cells({ title, topK, recall, worst, ms, exactMs, exactRecall }) {
  return {
    row: title,
    topK: String(topK),
    recall: recall.toFixed(3),
    worst: worst.toFixed(2),
    ms: ms.toFixed(1),
    'exact ms': exactMs.toFixed(1),
    times: (ms / exactMs).toFixed(2),
    'exact recall': exactRecall.toFixed(3),
  };
}

async function judge(gateway, set, { title, queries }, topK) {
  const recalls = [];
  const exactRecalls = [];
  let ms = 0;
  let exactMs = 0;
  let wrong = 0;
  for (const query of queries) {
    const [truth] = nearestProducts(set.vectors, [query.vector], topK, query.matches);
    const body = { vector: [...query.vector], topK, ...(query.filter && { filter: query.filter }) };
    const usual = await timed(gateway, body);
    const exact = await timed(gateway, { ...body, exact: true });
    ms += usual.ms;
    exactMs += exact.ms;
    for (const { result } of [usual, exact]) if (!isRight(set, query, result, truth)) wrong++;
    recalls.push(recallOf(usual.result, truth));
    exactRecalls.push(recallOf(exact.result, truth));
  }
  return {
    title,
    topK,
    wrong,
    recall: mean(recalls),
    worst: Math.min(...recalls),
    exactRecall: mean(exactRecalls),
    ms: ms / queries.length,
    exactMs: exactMs / queries.length,
  };
}

async function timed(gateway, body) {
  const [client] = gateway.clients;
  const request = gateway.post('/query', body);
  let ms = Number.POSITIVE_INFINITY;
  let reply;
  for (let i = 0; i < SENT; i++) {
    const sentAt = performance.now();
    reply = await client.send(request);
    ms = Math.min(ms, performance.now() - sentAt);
  }
  return { ms, result: JSON.parse(reply).result };
}

/** As many as there are, none twice, each with its own score and meant by the filter, the best first. */
function isRight({ vectors, dimension }, { vector, matches }, result, truth) {
  const found = truth.filter((product) => product > -2).length;
  if (result.length !== found || new Set(result.map(({ id }) => id)).size !== found) return false;
  return result.every(({ id, score }, i) => {
    let sum = 0;
    for (let k = 0; k < dimension; k++) sum += vector[k] * vectors[Number(id) * dimension + k];
    const isOwn = Math.abs((1 + sum) / 2 - score) < ROUNDING;
    return isOwn && matches(Number(id)) && (i === 0 || result[i - 1].score >= score);
  });
}

/** Share of the true neighbours that were found, by score: equally near ones count. */
function recallOf(result, truth) {
  const found = truth.filter((product) => product > -2);
  if (found.length === 0) return 1;
  const least = (1 + found.at(-1)) / 2 - 1e-6;
  return result.filter(({ score }) => score >= least).length / found.length;
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
