import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import kafkajs from 'kafkajs';
import { ask, closeConnections, startBrokerGateway } from './broker-gateway.mjs';
import { drive } from './load.mjs';

/** Which backends must run, by their names in `compose/backends.mjs`. */
export const backends = ['kafka'];

const VALUE = 'x'.repeat(200);
const RECORDS = 200_000;
const HAND_OVERS = 300;

/**
 * Produce and consume through the whole gateway against bare kafkajs, in turn (A B A B ...).
 * @param {{ rounds: number, seconds: number, connections: number }} load
 */
export async function run(given) {
  const load = { rounds: 5, seconds: 5, connections: 64, ...given };
  const bench = await setUp();
  try {
    const results = [
      await compareProduce(bench, load, { recordsPerSend: 1, inFlight: load.connections, goal: 2 }),
      await compareProduce(bench, load, { recordsPerSend: 100, inFlight: 16, goal: 0.6 }),
      await compareConsume(bench, load, 1),
      await compareConsume(bench, load, 4),
      await handOver(bench),
    ];
    return results.every(Boolean);
  } finally {
    await bench.tearDown();
  }
}

async function compareProduce(
  { reference, gateway, topics, post },
  load,
  { recordsPerSend, inFlight, goal },
) {
  const record = { value: VALUE };
  const body = recordsPerSend === 1 ? record : Array.from({ length: recordsPerSend }, () => record);
  const prepared = post(`/produce/${topics.produce}`, body);
  const expectedBody = (reply) => reply.includes('"offset"');
  const rates = [];
  let wrong = 0;
  let latencies;
  for (let round = 0; round < load.rounds; round++) {
    const options = { topic: topics.produce, value: VALUE, recordsPerSend, inFlight, seconds: load.seconds };
    const bare = await reference({ task: 'produce', ...options });
    const cpuBefore = gateway.cpuSeconds();
    const run = await drive({
      port: gateway.port,
      request: prepared,
      expectedBody,
      connections: inFlight,
      seconds: load.seconds,
    });
    wrong += run.wrong;
    latencies = run.latencies;
    const ours = (run.requests * recordsPerSend) / run.seconds;
    rates.push({ bare, ours, cpu: ((gateway.cpuSeconds() - cpuBefore) * 1e6) / run.requests });
  }
  const title = `produce, ${recordsPerSend} record(s) a request, ${inFlight} at once`;
  const more = `p50 ${latencies.quantile(0.5)} ms, p99 ${latencies.quantile(0.99)} ms`;
  return report(title, rates, goal, more) && wrong === 0;
}

async function compareConsume({ reference, fetchJson, topics, group }, load, instances) {
  const rates = [];
  for (let round = 0; round < load.rounds; round++) {
    const bare = await reference({ task: 'consume', topic: topics.full, records: RECORDS, group: group() });
    const mine = group();
    const consume = (instance, timeout) =>
      fetchJson(`/consume/${mine}/${instance}/${topics.full}?timeout=${timeout}`, {
        'Kafka-Auto-Offset-Reset': 'earliest',
      });
    let seen = 0;
    let startedAt = 0;
    let seenBefore = 0;
    const reader = async (_, instance) => {
      while (seen < RECORDS) {
        const records = await consume(instance, 200);
        seen += records;
        // as the reference does: joining and the first reads are not what is compared
        if (startedAt === 0 && seen >= RECORDS / 4) {
          startedAt = performance.now();
          seenBefore = seen;
        }
      }
      return performance.now();
    };
    const ends = await Promise.all(Array.from({ length: instances }, reader));
    rates.push({ bare, ours: ((RECORDS - seenBefore) * 1_000) / (Math.min(...ends) - startedAt) });
    for (let i = 0; i < instances; i++) await fetchJson(`/delete-consumer/${mine}/${i}`, {}, 'POST');
  }
  return report(`consume of a full topic, 500 records a reply, ${instances} instance(s)`, rates, 0.6);
}

/** From the start of a produce to the reply of a consume that waits for it. */
async function handOver({ fetchJson, topics, group }) {
  const mine = group();
  const consume = () => fetchJson(`/consume/${mine}/one/${topics.handOver}?timeout=10000`, {});
  await fetchJson(`/consume/${mine}/one/${topics.handOver}?timeout=3000`, {});
  const times = [];
  for (let i = 0; i < HAND_OVERS; i++) {
    const waiting = consume();
    await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 20));
    const startedAt = performance.now();
    await fetchJson(`/produce/${topics.handOver}/hello`, {});
    await waiting;
    times.push(performance.now() - startedAt);
  }
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.floor(times.length * share)];
  console.log(
    `\nfrom produce to a waiting consume: p50 ${at(0.5).toFixed(1)} ms, p99 ${at(0.99).toFixed(1)} ms`,
  );
  console.log(`goal: p50 under 15 ms; ${at(0.5) < 15 ? 'reached' : 'MISSED'}`);
  return true;
}

function report(title, rates, goal, more = '') {
  const ratios = rates.map(({ bare, ours }) => ours / bare).sort((a, b) => a - b);
  const ratio = ratios[Math.floor(ratios.length / 2)];
  console.log(`\n${title}: records/s`);
  for (const { bare, ours, cpu } of rates) {
    const cost = cpu === undefined ? '' : `, ${cpu.toFixed(0)} µs CPU a request`;
    console.log(
      `  kafkajs ${Math.round(bare)}, Portico ${Math.round(ours)} (${(ours / bare).toFixed(2)})${cost}`,
    );
  }
  console.log(
    `goal: at least ${goal} of kafkajs; ${ratio >= goal ? 'reached' : 'MISSED'} (${ratio.toFixed(2)}) ${more}`,
  );
  return true;
}

async function setUp() {
  const brokers = process.env.PORTICO_KAFKA_BROKERS;
  const prefix = `bench-${randomBytes(4).toString('hex')}`;
  const topics = Object.fromEntries(
    ['produce', 'full', 'handOver'].map((name) => [name, `${prefix}-${name}`]),
  );
  const admin = new kafkajs.Kafka({
    brokers: brokers.split(','),
    logLevel: kafkajs.logLevel.NOTHING,
  }).admin();
  await admin.connect();
  await admin.createTopics({
    waitForLeaders: true,
    topics: Object.values(topics).map((topic) => ({ topic, numPartitions: 4 })),
  });
  const child = fork('test/bench/broker-reference.mjs', {
    env: { PATH: process.env.PATH, PORTICO_KAFKA_BROKERS: brokers },
  });
  await new Promise((resolve) => child.once('message', resolve));
  const reference = (message) =>
    new Promise((resolve, reject) => {
      child.once('message', ({ result, error }) =>
        error === undefined ? resolve(result) : reject(new Error(error)),
      );
      child.send(message);
    });
  await reference({ task: 'fill', topic: topics.full, value: VALUE, records: RECORDS });
  const password = randomBytes(24).toString('base64url');
  const folder = await mkdtemp(join(tmpdir(), 'portico-bench-'));
  const gateway = await startBrokerGateway(folder, brokers, password);
  const authorization = `Basic ${Buffer.from(`portico:${password}`).toString('base64')}`;
  let groups = 0;
  return {
    reference,
    gateway,
    topics,
    group: () => `${prefix}-${groups++}`,
    post: (path, body) => {
      const text = JSON.stringify(body);
      return Buffer.from(
        `POST /broker${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${authorization}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
      );
    },
    /** How many records the reply has. */
    fetchJson: async (path, headers, method = 'GET') => {
      const { status, text } = await ask(
        gateway.port,
        `/broker${path}`,
        { authorization, ...headers },
        method,
      );
      if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
      // parsing would be the client's work, on the cores that the gateway shares with it
      return text.split('"offset":').length - 1;
    },
    tearDown: async () => {
      child.kill('SIGTERM');
      closeConnections();
      await gateway.stop();
      await admin.deleteTopics({ topics: Object.values(topics) });
      await admin.disconnect();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
