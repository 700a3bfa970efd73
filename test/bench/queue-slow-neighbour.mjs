import { startQueueGateway } from './queue-gateway.mjs';
import { countOf, publish, startSink } from './queue-traffic.mjs';

/** Which backends must run, by their names in `compose/backends.mjs`. */
export const backends = ['rabbitmq', 'postgres'];

const FALL_GOAL = 0.1;
const SLOW_MS = 10_000;
const MESSAGE = { headers: { 'upstash-retries': '0' }, body: 'x' };

/**
 * A destination that takes 1 ms, alone and beside one that takes 10 s and has more due than it can take: by how much
 * the fast one's throughput falls. In turns, so that what else the machine does meets both alike.
 * @param {{ rounds: number, seconds: number, connections: number }} load
 */
export async function run(given) {
  const load = { rounds: 5, seconds: 5, connections: 64, ...given };
  const fast = await startSink();
  const slow = await startSink();
  const gateway = await startQueueGateway();
  const rates = { alone: [], beside: [] };
  try {
    for (let round = 0; round < Math.min(3, load.rounds); round++) {
      rates.alone.push(await throughput(gateway, fast, load));
      const end = performance.now() + load.seconds * 1_000;
      for (let i = 0; i < 400; i++)
        await publish(gateway, `http://127.0.0.1:${slow.port}/after/${SLOW_MS}`, MESSAGE);
      rates.beside.push(
        await throughput(gateway, fast, { ...load, seconds: Math.max(2, (end - performance.now()) / 1_000) }),
      );
      console.log(
        `round ${round + 1}: alone ${Math.round(rates.alone.at(-1))}/s, beside ${Math.round(rates.beside.at(-1))}/s`,
      );
      await gateway.query(
        "update $schema.messages set state = 'CANCELED', finished_at = now() where finished_at is null",
      );
    }
  } finally {
    await gateway.stop();
    await fast.stop();
    await slow.stop();
  }
  const falls = rates.beside.map((rate, i) => 1 - rate / rates.alone[i]).sort((a, b) => a - b);
  const fall = falls[Math.floor(falls.length / 2)];
  console.log(
    `queue: a destination of 1 ms beside one of 10 s falls by ${(fall * 100).toFixed(0)} % (goal at most ${FALL_GOAL * 100} %: ${fall <= FALL_GOAL ? 'reached' : 'MISSED'})`,
  );
  return true;
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
