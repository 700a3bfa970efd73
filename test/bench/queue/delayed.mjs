import { randomBytes } from 'node:crypto';
import { startQueueGateway } from './gateway.mjs';
import { startSink } from './traffic.mjs';

/** Which backends must run, by their names in `compose/backends/backends.mjs`. */
export const backends = ['rabbitmq', 'postgres'];

const MESSAGES = Number(process.env.BENCH_DELAYED ?? 100_000);
const IN_ONE_BATCH = 500;
/** They become due at the full seconds of this time, so that no more are due a second than can be delivered. */
const SPREAD_S = Math.ceil(MESSAGES / 1_000);
const LATE_GOAL_MS = 1_000;

/** Many delayed messages waiting: what they cost the gateway in memory, and how late they are delivered. */
export async function run() {
  const sink = await startSink();
  const gateway = await startQueueGateway();
  try {
    const rssBefore = gateway.rssMegabytes();
    const started = performance.now();
    // the first is due when all are published, however long that takes
    const firstDue = Math.ceil(Date.now() / 1_000) + 20 + Math.ceil(MESSAGES / 2_000);
    await publish(MESSAGES / 10, gateway, sink, firstDue);
    const rssTenth = gateway.rssMegabytes();
    await publish(MESSAGES - MESSAGES / 10, gateway, sink, firstDue);
    const seconds = (performance.now() - started) / 1_000;
    const rssWaiting = gateway.rssMegabytes();
    const cpuWaiting = gateway.cpuSeconds();
    await untilDelivered(gateway);
    const cpuMicroseconds = ((gateway.cpuSeconds() - cpuWaiting) / MESSAGES) * 1e6;
    const late = await (await fetch(`http://127.0.0.1:${sink.port}/lateness`)).json();
    console.log(
      `queue: ${MESSAGES} delayed messages (published in ${seconds.toFixed(0)} s, due over ${SPREAD_S} s): RSS ${rssBefore.toFixed(0)} MB before, ` +
        `${rssTenth.toFixed(0)} MB with a tenth of them waiting, ${rssWaiting.toFixed(0)} MB with all, ${gateway.rssMegabytes().toFixed(0)} MB after, ${cpuMicroseconds.toFixed(0)} µs of CPU a delivery; ` +
        `${late.count} arrived, late p50 ${late.p50} ms, p99 ${late.p99} ms, at most ${late.max} ms ` +
        `(goal p99 ${LATE_GOAL_MS} ms: ${late.p99 <= LATE_GOAL_MS ? 'reached' : 'MISSED'})`,
    );
    if (late.count < MESSAGES || late.min < 0)
      throw new Error(`${late.count} arrivals, the first ${late.min} ms late`);
    return true;
  } finally {
    await gateway.stop();
    await sink.stop();
  }
}

async function publish(count, gateway, sink, firstDue) {
  for (let sent = 0; sent < count; sent += IN_ONE_BATCH * 2)
    await Promise.all([publishSome(gateway, sink, firstDue), publishSome(gateway, sink, firstDue)]);
  if (Date.now() > firstDue * 1_000) throw new Error('the first were due before the last were published');
}

async function publishSome(gateway, sink, firstDue) {
  const entries = Array.from({ length: IN_ONE_BATCH }, () => {
    const due = firstDue + Math.floor(Math.random() * SPREAD_S);
    return {
      destination: `http://127.0.0.1:${sink.port}/due/${due * 1_000}`,
      headers: { 'Upstash-Not-Before': String(due) },
      body: randomBytes(50).toString('hex'),
    };
  });
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
