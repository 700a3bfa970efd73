import { startQueueGateway } from './gateway.mjs';
import { countOf, publish, startSink } from './traffic.mjs';

/** Which backends must run, by their names in `compose/backends/backends.mjs`. */
export const backends = ['rabbitmq', 'postgres'];

const RATE_GOAL = 2_000;
const IDLE_GOAL_MS = 20;
const MESSAGE = { body: Buffer.alloc(500, 'x') };

/**
 * End to end, publish to delivery, on loopback: the time of one message when nothing else is under way, and the rate at
 * which `connections` senders that keep publishing see their messages delivered, with what is left over at the end.
 * @param {{ rounds: number, seconds: number, connections: number }} load
 */
export async function run(given) {
  const load = { rounds: 5, seconds: 5, connections: 64, ...given };
  const sink = await startSink();
  const gateway = await startQueueGateway();
  try {
    await idleLatency(gateway, sink);
    return await sustained(gateway, sink, load);
  } finally {
    await gateway.stop();
    await sink.stop();
  }
}

async function untilCount(sink, wanted) {
  for (;;) {
    const count = await countOf(sink);
    if (count >= wanted) return count;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function idleLatency(gateway, sink) {
  const before = await countOf(sink);
  for (let i = 0; i < 100; i++) {
    await publish(gateway, `http://127.0.0.1:${sink.port}/idle`, MESSAGE);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await untilCount(sink, before + 100);
  // from the stored message to the beginning of its attempt, by Postgres' clock
  const [{ p50, p99 }] = await gateway.query(
    `select percentile_cont(0.5) within group (order by ms) as p50, percentile_cont(0.99) within group (order by ms) as p99
      from (select extract(epoch from max(at) filter (where state = 'DELIVERED') - min(at)) * 1000 as ms
        from $schema.events group by message_id) as times`,
  );
  console.log(
    `queue: idle, stored to delivered and written: p50 ${Number(p50).toFixed(1)} ms, p99 ${Number(p99).toFixed(1)} ms ` +
      `(goal p50 under ${IDLE_GOAL_MS} ms: ${p50 < IDLE_GOAL_MS ? 'reached' : 'MISSED'})`,
  );
}

async function sustained(gateway, sink, { seconds, connections }) {
  const before = await countOf(sink);
  const cpuBefore = gateway.cpuSeconds();
  const started = performance.now();
  const end = started + seconds * 1_000;
  let published = 0;
  const sender = async () => {
    while (performance.now() < end) {
      // at most what is to be delivered, so that the queue has no excuse to grow
      const due = ((performance.now() - started) / 1_000) * RATE_GOAL * 1.05;
      if (published > due) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        continue;
      }
      published += 1;
      await publish(gateway, `http://127.0.0.1:${sink.port}/load`, MESSAGE);
    }
  };
  await Promise.all(Array.from({ length: connections }, sender));
  const elapsed = (performance.now() - started) / 1_000;
  const delivered = (await countOf(sink)) - before;
  const cpu = gateway.cpuSeconds() - cpuBefore;
  await untilCount(sink, before + published);
  const total = (performance.now() - started) / 1_000;
  const rate = delivered / elapsed;
  console.log(
    `queue: ${seconds} s of publishes (${Math.round(published / elapsed)}/s) delivered at ${Math.round(rate)}/s, ` +
      `${published - delivered} left over at the end, all there ${(total - elapsed).toFixed(1)} s later; ` +
      `${((cpu * 1e6) / delivered).toFixed(0)} µs of CPU a message, RSS ${gateway.rssMegabytes().toFixed(0)} MB ` +
      `(goal ${RATE_GOAL}/s: ${rate >= RATE_GOAL ? 'reached' : 'MISSED'})`,
  );
  return true;
}
