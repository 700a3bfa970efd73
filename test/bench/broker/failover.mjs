import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { noneWrong, printGoal, printTable } from '../frame.mjs';
import { endWithThisProcess } from '../server-process.mjs';
import { startBrokerGateway } from './gateway.mjs';
import { startKafkaCluster } from './kafka-cluster.mjs';

/** It has brokers of its own. */
export const backends = [];

const BROKERS = 3;
const PARTITIONS = 6;
/** Pause of each writer between two records of a partition, in ms. */
const EVERY_MS = 100;
/** Until all clients write and read. */
const WARM_UP_MS = 10_000;
/** How long a broker is gone and watched. A client that is silent at the end counts so far. */
const WATCHED_SECONDS = 60;
/** Of one run the same client's silences differ by about so much: when its requests met the dead broker. */
const SLACK_MS = 1_000;
/** Kafka's jar of tools, which has the clients of Java: https://central.sonatype.com/artifact/org.apache.kafka/kafka-tools */
const TOOLS = process.env.PORTICO_BENCH_KAFKA_TOOLS;

/**
 * Three brokers, one of which is killed: how long the gateway and native clients in the same run acknowledge no record of a
 * partition, and hand out none.
 * @param {import('../frame.mjs').Load} load
 */
export async function run({ rounds, seconds = WATCHED_SECONDS }) {
  const folder = await mkdtemp(join(tmpdir(), 'portico-bench-'));
  const cluster = await startKafkaCluster(BROKERS);
  const admin = kafkaOf(cluster).admin();
  try {
    await admin.connect();
    const topics = ['portico', 'kafkajs', ...(TOOLS === undefined ? [] : ['java'])];
    await admin.createTopics({
      waitForLeaders: true,
      topics: topics.map((topic) => ({ topic, numPartitions: PARTITIONS, replicationFactor: BROKERS })),
    });
    const silences = new Map(topics.map((name) => [name, []]));
    for (let round = 0; round < rounds; round++) {
      await untilWhole(admin, topics);
      const victim = 1 + (round % BROKERS);
      const events = await watchedKill({ cluster, folder, names: topics, victim, seconds, round });
      for (const name of topics) silences.get(name).push(silenceOf(events, name));
      await cluster.restart(victim);
    }
    report(silences);
    return noneWrong(0);
  } finally {
    await admin.disconnect();
    await cluster.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function kafkaOf({ addresses, ca, username, password }) {
  return new kafkajs.Kafka({
    brokers: addresses,
    ssl: { ca: [readFileSync(ca, 'utf8')] },
    sasl: { mechanism: 'plain', username, password },
    logLevel: kafkajs.logLevel.NOTHING,
  });
}

/** Every replica is in sync, and leaders are spread as at first. */
async function untilWhole(admin, names) {
  for (;;) {
    const { topics } = await admin.fetchTopicMetadata({ topics: names }).catch(() => ({ topics: [] }));
    const partitions = topics.flatMap((topic) => topic.partitions);
    const isWhole = partitions.every(
      ({ isr, replicas, leader }) => isr.length === BROKERS && leader === replicas[0],
    );
    if (partitions.length > 0 && isWhole) return;
    await sleep(500);
  }
}

/** What each client wrote and read, and when, while a broker was killed. */
async function watchedKill({ cluster, folder, names, victim, seconds, round }) {
  const events = { written: new Map(), read: new Map(), killedAt: 0, end: 0 };
  for (const kind of ['written', 'read']) for (const name of names) events[kind].set(name, []);
  const source = names.at(-1);
  const group = `g${round}-${randomBytes(3).toString('hex')}`;
  const clients = await Promise.all(
    names.map((name) => CLIENTS[name]({ cluster, folder, source, group: `${group}-${name}`, events })),
  );
  await sleep(WARM_UP_MS);
  events.killedAt = Date.now();
  await cluster.kill(victim);
  await sleep(seconds * 1_000);
  events.end = Date.now();
  await Promise.all(clients.map((end) => end()));
  return events;
}

const CLIENTS = { portico: runPortico, kafkajs: runKafkajs, java: runJava };

async function runPortico({ cluster, folder, source, group, events }) {
  const { addresses, ca, username, password } = cluster;
  const secret = randomBytes(24).toString('base64url');
  const gateway = await startBrokerGateway(folder, addresses.join(','), secret, {
    tls: { enabled: true, ca },
    sasl: { mechanism: 'plain', username, password },
  });
  const url = `http://127.0.0.1:${gateway.port}/broker`;
  const headers = { authorization: `Basic ${Buffer.from(`portico:${secret}`).toString('base64')}` };
  let isOver = false;
  const call = async (path, body) => {
    const method = body === undefined ? 'GET' : 'POST';
    const options = { method, headers, signal: AbortSignal.timeout(30_000) };
    const reply = await fetch(
      url + path,
      body === undefined ? options : { ...options, body: JSON.stringify(body) },
    );
    const value = await reply.json();
    if (reply.status !== 200) throw new Error(value.error);
    return value;
  };
  const repeat = async (act) => {
    while (!isOver) {
      // it asks again
      await act().catch(() => undefined);
      await sleep(EVERY_MS);
    }
  };
  const writers = Array.from({ length: PARTITIONS }, (_, partition) =>
    repeat(async () => {
      const [{ offset }] = await call('/produce/portico', { partition, value: 'v' });
      events.written.get('portico').push([partition, offset, Date.now()]);
    }),
  );
  const reader = repeat(async () => {
    for (const { partition, offset } of await call(`/consume/${group}/one/${source}?timeout=1000`))
      events.read.get('portico').push([partition, offset, Date.now()]);
  });
  return async () => {
    isOver = true;
    await Promise.all([...writers, reader]);
    await gateway.stop();
  };
}

async function runKafkajs({ cluster, source, group, events }) {
  const { addresses: brokers, ca, username, password } = cluster;
  const task = { brokers, ca, username, password, group, produceTo: 'kafkajs', consumeFrom: source };
  const child = fork('test/bench/broker/failover-reference.mjs', {
    env: {
      PATH: process.env.PATH,
      FAILOVER: JSON.stringify({ ...task, partitions: PARTITIONS, everyMs: EVERY_MS }),
    },
  });
  endWithThisProcess(child);
  child.on('message', ({ written, read }) => {
    if (written !== undefined) events.written.get('kafkajs').push(written);
    if (read !== undefined) events.read.get('kafkajs').push(read);
  });
  return () => ended(child);
}

async function runJava({ cluster, source, group, events }) {
  const servers = ['--bootstrap-server', cluster.addresses.join(',')];
  const rate = String((PARTITIONS * 1_000) / EVERY_MS);
  const producer = await cluster.spawnTool(TOOLS, 'org.apache.kafka.tools.VerifiableProducer', [
    ...servers,
    ...['--topic', 'java', '--throughput', rate, '--repeating-keys', '60'],
  ]);
  const consumer = await cluster.spawnTool(TOOLS, 'org.apache.kafka.tools.VerifiableConsumer', [
    ...servers,
    ...['--topic', source, '--group-id', group, '--verbose'],
  ]);
  const note = (child, wanted, list) =>
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (!line.startsWith('{')) return;
      const { name, partition, offset } = JSON.parse(line);
      if (name === wanted) list.push([partition, offset, Date.now()]);
    });
  note(producer, 'producer_send_success', events.written.get('java'));
  note(consumer, 'record_data', events.read.get('java'));
  return () => Promise.all([ended(producer), ended(consumer)]);
}

async function ended(child) {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/** In s: the longest times without a record written, and read, in any partition; and from the acknowledgement of a record to its reader. */
function silenceOf({ written, read, killedAt, end }, name) {
  const source = [...written.values()].at(-1);
  const seen = new Map(read.get(name).map(([partition, offset, at]) => [`${partition} ${offset}`, at]));
  const waits = source
    .filter(([, , at]) => at > killedAt - 5_000 && at < end - 1_000)
    .map(([partition, offset, at]) => (seen.get(`${partition} ${offset}`) ?? end) - at);
  return {
    write: longestGap(written.get(name), killedAt, end) / 1_000,
    read: longestGap(read.get(name), killedAt, end) / 1_000,
    wait: Math.max(0, ...waits) / 1_000,
  };
}

function longestGap(events, killedAt, end) {
  let longest = 0;
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const times = events.filter(([of, , at]) => of === partition && at > killedAt - 1_000 && at < end);
    let last = killedAt - 1_000;
    for (const at of [...times.map(([, , at]) => at), end]) {
      longest = Math.max(longest, at - last);
      last = at;
    }
  }
  return longest;
}

function report(silences) {
  console.log(
    '\nbroker: one of three brokers is killed — longest silence of any partition in s, round by round',
  );
  const list = (rounds, what) => rounds.map((round) => round[what].toFixed(1)).join(' ');
  printTable(
    [...silences].map(([client, rounds]) => ({
      client,
      'nothing written': list(rounds, 'write'),
      'nothing read': list(rounds, 'read'),
      'written until read': list(rounds, 'wait'),
    })),
  );
  const worst = (name, what) => Math.max(...silences.get(name).map((round) => round[what]));
  for (const what of ['write', 'read', 'wait']) {
    const native = Math.max(
      ...[...silences.keys()].filter((name) => name !== 'portico').map((name) => worst(name, what)),
    );
    const found = worst('portico', what);
    printGoal(
      `${what}: no longer than the native clients`,
      found <= native + SLACK_MS / 1_000,
      `${found.toFixed(1)} s and ${native.toFixed(1)} s`,
    );
  }
}
