import { randomBytes } from 'node:crypto';
import { startQueueGateway } from './queue-gateway.mjs';
import { startServer } from './server-process.mjs';

/** Which backends must run, by their names in `compose/backends.mjs`. */
export const backends = ['rabbitmq', 'postgres'];

const MESSAGES = Number(process.env.BENCH_DELAYED ?? 100_000);
const IN_ONE_BATCH = 500;
/** They become due spread over this time, so that no more are due a second than can be delivered. */
const SPREAD_S = Math.ceil(MESSAGES / 1_000);
const LATE_GOAL_MS = 1_000;

/** Many delayed messages waiting: what they cost the gateway in memory, and how late they are delivered. */
export async function run() {
  const sink = await startServer({
    args: ['test/bench/queue-sink.mjs'],
    portOf: (line) => Number(/^listening on (\d+)$/.exec(line)?.[1]) || undefined,
  });
  const gateway = await startQueueGateway();
  try {
    const rssBefore = gateway.rssMegabytes();
    const started = performance.now();
    // the first is due when all are published, however long that takes
    const firstDue = Math.ceil(Date.now() / 1_000) + 30 + Math.ceil(MESSAGES / 1_500);
    for (let sent = 0; sent < MESSAGES; sent += IN_ONE_BATCH * 2)
      await Promise.all([publishSome(gateway, sink, firstDue), publishSome(gateway, sink, firstDue)]);
    const seconds = (performance.now() - started) / 1_000;
    const rssWaiting = gateway.rssMegabytes();
    await untilDelivered(gateway);
    const [{ p50, p99, max }] = await gateway.query(
      `select percentile_cont(0.5) within group (order by ms) as p50, percentile_cont(0.99) within group (order by ms) as p99, max(ms) as max
        from (select extract(epoch from min(e.at)) * 1000 - min(m.not_before) as ms
          from $schema.events e join $schema.messages m on m.id = e.message_id where e.state = 'ACTIVE' group by e.message_id) as late`,
    );
    console.log(
      `queue: ${MESSAGES} delayed messages (published in ${seconds.toFixed(0)} s, due over ${SPREAD_S} s): RSS ${rssBefore.toFixed(0)} MB before, ` +
        `${rssWaiting.toFixed(0)} MB with all waiting, ${gateway.rssMegabytes().toFixed(0)} MB after; late p50 ${Math.round(p50)} ms, ` +
        `p99 ${Math.round(p99)} ms, at most ${Math.round(max)} ms (goal p99 ${LATE_GOAL_MS} ms: ${p99 <= LATE_GOAL_MS ? 'reached' : 'MISSED'})`,
    );
    return true;
  } finally {
    await gateway.stop();
    await sink.stop();
  }
}

async function publishSome(gateway, sink, firstDue) {
  const entries = Array.from({ length: IN_ONE_BATCH }, () => ({
    destination: `http://127.0.0.1:${sink.port}/delayed`,
    headers: { 'Upstash-Not-Before': String(firstDue + Math.floor(Math.random() * SPREAD_S)) },
    body: randomBytes(50).toString('hex'),
  }));
  const reply = await fetch(`http://127.0.0.1:${gateway.port}/queue/v2/batch`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.token}` },
    body: JSON.stringify(entries),
  });
  const text = await reply.text();
  if (reply.status !== 200 || text.includes('"error"'))
    throw new Error(`batch: ${reply.status} ${text.slice(0, 300)}`);
}

async function untilDelivered(gateway) {
  for (;;) {
    const [{ open }] = await gateway.query(
      'select count(*)::int as open from $schema.messages where finished_at is null',
    );
    if (open === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}
