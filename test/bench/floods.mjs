import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { startWatched } from '../fuzz/gateway.mjs';
import { FLOODS, prepare } from './floods/requests.mjs';
import { Latencies } from './latencies.mjs';
import { freeConnections, pace } from './load.mjs';
import { cpuSeconds } from './server-process.mjs';

export const backends = ['redis', 'postgres', 'kafka', 'rabbitmq'];

const MIB = 1024 * 1024;
/** Requests a second of another token. */
const PACE = 20;

/**
 * Small requests that ask for much, thousands at once: how far the gateway's memory rises, how long its loop stands still,
 * what is answered, and what another's requests take meanwhile. Each flood meets a gateway of its own.
 * @param {{ rounds?: number, seconds?: number, only?: string }} given `only`: floods whose name holds it
 */
export async function run({ rounds = 1, seconds = 60, only = '' }) {
  const prepared = await prepare();
  const rows = [];
  try {
    for (const flood of FLOODS.filter(({ name }) => name.includes(only))) {
      for (let round = 0; round < rounds; round++) {
        const gateway = await startWatched(prepared.document, prepared.environment);
        try {
          await prepared.fill(flood, gateway);
          rows.push({ flood: flood.name, ...(await measured(gateway, flood, prepared, seconds)) });
          console.log(JSON.stringify(rows.at(-1)));
        } finally {
          await gateway.stop();
        }
      }
    }
  } finally {
    await prepared.remove();
  }
  console.table(rows);
  return rows.every(({ wrong }) => wrong === 0);
}

async function measured(gateway, flood, prepared, seconds) {
  const [request, last] = ['keep-alive', 'close'].map((how) => prepared.request(flood, 'other', how));
  const own = prepared.request(flood, 'own', 'keep-alive');
  const session = { request: () => own, isRight: (status) => status === 200 };
  const others = freeConnections(gateway.port, session);
  for (let i = 0; i < 10; i++)
    if (!(await others.send())) throw new Error(`${flood.name}: another is refused`);
  await sleep(500);
  const before = await gateway.begin();
  const startedAt = performance.now();
  const cpuBefore = cpuSeconds(gateway.pid);
  let over = false;
  const paced = { latencies: new Latencies(), wrong: 0, requests: 0 };
  const beside = (async () => {
    while (!over) {
      const round = await pace({ send: others.send, perSecond: PACE, seconds: 1 });
      paced.wrong += round.wrong;
      paced.requests += round.requests;
      paced.latencies.merge(round.latencies);
    }
  })();
  const results = await Promise.all(
    Array.from({ length: flood.connections }, () =>
      oneConnection(
        gateway.port,
        Buffer.concat([...Array(flood.each - 1).fill(request), last]),
        seconds * 1_000,
      ),
    ),
  );
  const took = (performance.now() - startedAt) / 1_000;
  over = true;
  await beside;
  others.close();
  const { stopMs, peak } = await gateway.end();
  const statuses = {};
  for (const result of results)
    for (const status of result.statuses) statuses[status] = (statuses[status] ?? 0) + 1;
  return {
    'RSS MiB': `${Math.round(before / MIB)} +${Math.round((peak - before) / MIB)}`,
    'stop ms': Math.round(stopMs),
    seconds: Number(took.toFixed(1)),
    'MB/s': Math.round(results.reduce((sum, { bytes }) => sum + bytes, 0) / took / 1e6),
    'CPU ms a reply': Number(
      (((cpuSeconds(gateway.pid) - cpuBefore) * 1_000) / (statuses[200] ?? 1)).toFixed(1),
    ),
    statuses: JSON.stringify(statuses),
    "other's p50 ms": Number(paced.latencies.quantile(0.5).toFixed(1)),
    p99: Number(paced.latencies.quantile(0.99).toFixed(1)),
    wrong: paced.wrong,
  };
}

/** Sends all and reads to the end; nothing is kept but the statuses. */
function oneConnection(port, all, limitMs) {
  const result = { statuses: [], bytes: 0 };
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(all));
    const late = setTimeout(() => {
      result.statuses.push('late');
      socket.destroy();
    }, limitMs);
    let rest = Buffer.alloc(0);
    socket.on('data', (bytes) => {
      result.bytes += bytes.length;
      const text = Buffer.concat([rest, bytes]);
      for (
        let at = text.indexOf('HTTP/1.1 ');
        at >= 0 && at + 12 <= text.length;
        at = text.indexOf('HTTP/1.1 ', at + 12)
      )
        result.statuses.push(text.latin1Slice(at + 9, at + 12));
      rest = text.subarray(Math.max(0, text.length - 11));
      // a head whose status has been read is not read again
      if (rest.indexOf('HTTP/1.1 ') >= 0 && rest.indexOf('HTTP/1.1 ') + 12 <= rest.length)
        rest = Buffer.alloc(0);
    });
    socket.once('error', (error) => result.statuses.push(error.code));
    socket.once('close', () => {
      clearTimeout(late);
      resolve(result);
    });
  });
}
