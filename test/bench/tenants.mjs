import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freeConnections, pace } from './load.mjs';
import { startSink } from './queue/traffic.mjs';
import { startServer } from './server-process.mjs';
import { startSharedGateway, vectorAt } from './tenants/gateway.mjs';

export const backends = ['redis', 'postgres', 'kafka', 'rabbitmq'];

/** Requests a second of the one who is measured. */
const PACE = 20;
/** What a neighbour may cost at p50: the larger of the two. */
const GOAL = { ms: 5, share: 0.1 };
/** Before a flood is at its height. */
const RISE_MS = 2_000;

/**
 * One who asks 20 times a second, alone and beside another of the same service who asks as fast as 64 connections can:
 * by how much the p50 rises. In turns, so that what else the machine does meets both alike.
 * @param {{ rounds?: number, seconds?: number, connections?: number, only?: string }} given `only`: floods whose name holds it
 */
export async function run(given) {
  const { only = '' } = given;
  const { rounds, seconds, connections } = { rounds: 3, seconds: 5, connections: 64, ...given };
  const gateway = await startSharedGateway();
  const sink = await startSink();
  const folder = await mkdtemp(join(tmpdir(), 'portico-bench-'));
  const rows = [];
  try {
    for (const [service, { own, floods }] of Object.entries(services(gateway, sink))) {
      for (const [flood, request] of Object.entries(floods)) {
        if (!`${service} ${flood}`.includes(only)) continue;
        const file = join(folder, 'request');
        await writeFile(file, request);
        const row = await beside({ gateway, own, file, rounds: Math.min(3, rounds), seconds, connections });
        rows.push({ service, flood, ...row });
        console.log(JSON.stringify(rows.at(-1)));
      }
    }
  } finally {
    await gateway.close();
    await sink.stop();
    await rm(folder, { recursive: true, force: true });
  }
  console.table(rows);
  return rows.every(({ wrong }) => wrong === 0);
}

function services({ request, topic, list }, sink) {
  const small = Array.from({ length: 1_000 }, (_, i) => ['GET', `none:${i}`]);
  const to = (host) => `http://127.0.0.1:${sink.port}/${host}`;
  const message = (destination, body) => ({
    destination,
    body,
    headers: { 'Upstash-Flow-Control-Key': 'one', 'Upstash-Flow-Control-Value': 'parallelism=10' },
  });
  return {
    kv: {
      own: request('own', '/kv', ['GET', 'none']),
      floods: {
        'pipelines of 1,000': request('other', '/kv/pipeline', small),
        'MGET of 100,000 keys': request('other', '/kv', ['MGET', ...Array(100_000).fill('none')]),
        'LRANGE of 10,000': request('other', '/kv', ['LRANGE', list, '0', '-1']),
      },
    },
    vector: {
      own: request('own', '/vector/query', { vector: vectorAt(1), topK: 10 }),
      floods: {
        'topK 1,000 with vectors': request('other', '/vector/query', {
          vector: vectorAt(2),
          topK: 1_000,
          includeVectors: true,
          includeMetadata: true,
        }),
        'a filter that fits nothing': request('other', '/vector/query', {
          vector: vectorAt(2),
          topK: 10,
          filter: 'n < 0',
        }),
        'fetch of 1,000 ids': request('other', '/vector/fetch', {
          ids: Array.from({ length: 1_000 }, (_, i) => `r${i}`),
          includeVectors: true,
        }),
      },
    },
    broker: {
      own: request('own', `/broker/produce/${topic}`, { value: 'x', partition: 0 }),
      floods: {
        'records of 200 bytes': request('other', `/broker/produce/${topic}`, { value: 'y'.repeat(200) }),
        '1,000 records a request': request(
          'other',
          `/broker/produce/${topic}`,
          Array(1_000).fill({ value: 'y'.repeat(200) }),
        ),
        'fetch of 1 MB': request('other', '/broker/fetch', { topic, partition: 1, offset: 0 }),
      },
    },
    queue: {
      own: request('own', `/queue/v2/publish/${to('own')}`, 'x'),
      floods: {
        publishes: request('other', `/queue/v2/publish/${to('other')}`, 'y'),
        'listings of the log': request('other', '/queue/v2/events?count=1000', undefined, { method: 'GET' }),
        'batches of 100, one flow key': request(
          'other',
          '/queue/v2/batch',
          Array.from({ length: 100 }, () => message(to('other'), 'y')),
        ),
      },
    },
  };
}

/** @returns medians over the rounds, in ms */
async function beside({ gateway, own, file, rounds, seconds, connections }) {
  const alone = [];
  const flooded = [];
  let wrong = 0;
  let replies = {};
  const measure = async (into) => {
    const session = { request: () => own, isRight: (status) => status === 200 };
    const { send, close } = freeConnections(gateway.port, session);
    const run = await pace({ send, perSecond: PACE, seconds });
    close();
    wrong += run.wrong;
    into.push(run.latencies.quantile(0.5));
  };
  for (let round = 0; round < rounds; round++) {
    await measure(alone);
    const flooder = await startServer({
      args: ['test/bench/tenants/flooder.mjs', String(gateway.port), String(connections), file],
      portOf: (line) => Number(/^listening on (\d+)$/.exec(line)?.[1]) || undefined,
      onLine: (line) => {
        if (line.startsWith('{')) replies = JSON.parse(line);
      },
    });
    await sleep(RISE_MS);
    await measure(flooded);
    await flooder.stop();
    // what is left of the flood is no part of the next measurement
    await sleep(RISE_MS);
  }
  const [before, after] = [median(alone), median(flooded)];
  const allowed = Math.max(GOAL.ms, before * GOAL.share);
  return {
    'alone p50 ms': before,
    'beside p50 ms': after,
    goal: after - before <= allowed ? 'reached' : 'MISSED',
    replies: JSON.stringify(replies),
    wrong,
  };
}

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
