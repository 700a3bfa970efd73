import { Redis } from 'ioredis';
import { median, noneWrong, printGoal, printTable } from '../frame.mjs';
import { Latencies } from '../latencies.mjs';
import { fixed, freeConnections, pace } from '../load.mjs';
import { get } from './requests.mjs';
import { withKvServers } from './servers.mjs';

export const backends = ['redis'];

const PER_SECOND = 1_000;
const ADDED_P99_MS = 2;
const VALUE = 'x'.repeat(100);

/**
 * 1,000 GETs a second whatever the replies do: what the way through HTTP and the gateway adds to ioredis alone.
 * @param {import('../frame.mjs').Load} load
 */
export function run({ rounds, seconds = 3 }) {
  return withKvServers(async ({ redis, prefix, token, reference, gateway }) => {
    const key = `${prefix}get`;
    await redis.set(key, VALUE);
    const expected = JSON.stringify({ result: VALUE });
    const bare = new Redis(process.env.PORTICO_REDIS_URL);
    const viaReference = freeConnections(reference.port, fixed(get(`/get/${key}`), expected)());
    const viaGateway = freeConnections(gateway.port, fixed(get(`/kv/get/${key}`, token), expected)());
    const contenders = [
      { name: 'ioredis, no HTTP', send: async () => (await bare.get(key)) === VALUE },
      { name: 'node:http + ioredis', send: viaReference.send },
      { name: 'Portico', send: viaGateway.send },
    ];
    try {
      return await comparePaced(contenders, rounds, seconds);
    } finally {
      bare.disconnect();
      viaReference.close();
      viaGateway.close();
    }
  });
}

async function comparePaced(contenders, rounds, seconds) {
  const results = contenders.map(() => ({
    latencies: new Latencies(),
    p99s: [],
    requests: 0,
    seconds: 0,
    wrong: 0,
  }));
  for (const { send } of contenders) await pace({ send, perSecond: PER_SECOND, seconds: 1 });
  for (let round = 0; round < rounds; round++) {
    for (const [i, { send }] of contenders.entries()) {
      const run = await pace({ send, perSecond: PER_SECOND, seconds });
      results[i].latencies.merge(run.latencies);
      results[i].p99s.push(run.latencies.quantile(0.99));
      results[i].requests += run.requests;
      results[i].seconds += run.seconds;
      results[i].wrong += run.wrong;
    }
  }
  console.log(`\nkv: GET of 100 bytes, ${PER_SECOND} a second — ${rounds} rounds of ${seconds} s, open loop`);
  // round by round, as the runs of a round met about the same machine
  const addedBy = ({ p99s }) => median(p99s.map((p99, round) => p99 - results[0].p99s[round]));
  printTable(results.map((result, i) => rowOf(contenders[i].name, result, addedBy(result))));
  const added = addedBy(results.at(-1));
  const goal = `p99 at most ${ADDED_P99_MS} ms above that of ioredis`;
  printGoal(goal, added <= ADDED_P99_MS, `${added.toFixed(2)} ms`);
  return noneWrong(results.reduce((sum, { wrong }) => sum + wrong, 0));
}

function rowOf(name, { latencies, requests, seconds, wrong }, added) {
  return {
    server: name,
    'req/s': String(Math.round(requests / seconds)),
    'p50 ms': latencies.quantile(0.5).toFixed(2),
    'p99 ms': latencies.quantile(0.99).toFixed(2),
    'p99.9 ms': latencies.quantile(0.999).toFixed(2),
    'p99 added ms': added.toFixed(2),
    wrong: String(wrong),
  };
}
