import { createServer } from 'node:http';
import { startQueueGateway } from './gateway.mjs';
import { countOf, publish, startSink } from './traffic.mjs';

/** Which backends must run, by their names in `compose/backends/backends.mjs`. */
export const backends = ['rabbitmq', 'postgres'];

const FALL_GOAL = 0.1;
const MESSAGE = { headers: { 'upstash-retries': '0' }, body: 'x' };
/** What is due at those that hang, together. */
const HANGING_MESSAGES = 1_000;

/**
 * A destination that takes 1 ms, alone and beside some that never answer and have more due than their share: by how much
 * its throughput falls. In turns, so that what else the machine does meets both alike.
 * @param {{ rounds: number, seconds: number, connections: number }} load
 */
export async function run(given) {
  const load = { rounds: 5, seconds: 5, connections: 64, ...given };
  const fast = await startSink();
  const gateway = await startQueueGateway();
  try {
    for (const hosts of [1, 2, 10, 100]) {
      const fall = await fallBeside(hosts, gateway, fast, load);
      console.log(
        `queue: a destination of 1 ms beside ${hosts} that hang falls by ${(fall * 100).toFixed(0)} % (goal at most ${FALL_GOAL * 100} %: ${fall <= FALL_GOAL ? 'reached' : 'MISSED'})`,
      );
    }
  } finally {
    await gateway.stop();
    await fast.stop();
  }
  return true;
}

async function fallBeside(hosts, gateway, fast, load) {
  const falls = [];
  for (let round = 0; round < Math.min(3, load.rounds); round++) {
    const alone = await throughput(gateway, fast, load);
    const hanging = await Promise.all(Array.from({ length: hosts }, startHanging));
    for (let i = 0; i < HANGING_MESSAGES; i++)
      await publish(gateway, `http://127.0.0.1:${hanging[i % hosts].address().port}/`, MESSAGE);
    const beside = await throughput(gateway, fast, load);
    console.log(`${hosts} that hang: alone ${Math.round(alone)}/s, beside ${Math.round(beside)}/s`);
    falls.push(1 - beside / alone);
    await gateway.query(
      "update $schema.messages set state = 'CANCELED', finished_at = now() where finished_at is null",
    );
    for (const server of hanging) {
      server.closeAllConnections();
      server.close();
    }
  }
  return falls.sort((a, b) => a - b)[Math.floor(falls.length / 2)];
}

/** A destination on a port of its own that takes requests and never answers. */
function startHanging() {
  const server = createServer((request) => request.resume());
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

/** Deliveries a second while `connections` senders publish. */
async function throughput(gateway, sink, { seconds, connections }) {
  const before = await countOf(sink);
  const started = performance.now();
  const end = started + seconds * 1_000;
  const sender = async () => {
    while (performance.now() < end) await publish(gateway, `http://127.0.0.1:${sink.port}/after/1`, MESSAGE);
  };
  await Promise.all(Array.from({ length: connections }, sender));
  return ((await countOf(sink)) - before) / ((performance.now() - started) / 1_000);
}
