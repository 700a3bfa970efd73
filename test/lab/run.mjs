import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { installNative } from '../../compose/native/native-backends.mjs';
import { runnerFor } from '../../compose/native/unprivileged.mjs';
import { makeFolders, profile } from '../../compose/state/profile.mjs';
import { cards } from '../../compose/state/services.mjs';
import { Client } from '../soak/client.mjs';
import { startGateway } from '../soak/gateway.mjs';
import { BrokerLoad, PARTITIONS, TOPIC } from '../soak/loads/broker.mjs';
import { Destinations } from '../soak/loads/destinations.mjs';
import { KvLoad } from '../soak/loads/kv.mjs';
import { QueueLoad } from '../soak/loads/queue.mjs';
import { DIMENSION, VectorLoad } from '../soak/loads/vector.mjs';
import { startBalancer } from './balancer.mjs';
import { KafkaCluster } from './kafka.mjs';
import { makeNetwork } from './network.mjs';
import { PostgresPair } from './postgres.mjs';
import { RabbitmqCluster } from './rabbitmq.mjs';
import { RedisSentinels } from './redis.mjs';

// npm run lab [-- --faults NAME,...]: clusters on machines of a network of their own, and what is lost when one of them is.

const { values } = parseArgs({
  options: {
    faults: { type: 'string' },
    /** How long a fault lasts, and how long all is well before the next, in s. */
    lasts: { type: 'string', default: '8' },
    pause: { type: 'string', default: '8' },
    gateways: { type: 'string', default: '3' },
    workers: { type: 'string', default: '2' },
    keep: { type: 'boolean', default: false },
  },
});
const LASTS_MS = Number(values.lasts) * 1_000;
const PAUSE_MS = Number(values.pause) * 1_000;
const DRAIN_MS = 240_000;
/** Behind the ports of the tests' backends. */
const FIRST_PEER = Number(process.env.PORTICO_PORT_BASE ?? 18_070) + 1_500;
const SERVICES = ['kv', 'vector', 'broker', 'queue'];
const begun = performance.now();
const say = (line) =>
  console.log(`${((performance.now() - begun) / 1_000).toFixed(1).padStart(7)} s  ${line}`);

const kinds = {
  kill: [(machine) => machine.kill(), async () => undefined],
  pause: [(machine) => machine.pause(), (machine) => machine.resume()],
  cut: [(machine) => machine.cut(), (machine) => machine.heal()],
  mute: [(machine) => machine.mute(), (machine) => machine.unmute()],
};

/** By name, what is done. */
function faultsOf({ postgres, rabbitmq, redis, kafka, gateways }) {
  const faults = {};
  for (const [kind, [fault, undo]] of Object.entries(kinds)) {
    faults[`${kind} primary`] = () => postgres.failOver(fault, undo, LASTS_MS);
    faults[`${kind} standby`] = () => postgres.loseStandby(fault, undo, LASTS_MS);
    const on = (cluster) => async (machine) => {
      await fault(machine);
      await sleep(LASTS_MS);
      await undo(machine);
      if (kind === 'kill') await cluster.run(machine);
    };
    for (const [name, cluster] of Object.entries({ rabbitmq, kafka, redis }))
      for (const [i, machine] of cluster.machines.entries())
        faults[`${kind} ${name} ${i + 1}`] = () => on(cluster)(machine);
    faults[`${kind} redis primary`] = async () => on(redis)(await redis.primary());
  }
  faults['pause gateway'] = async () => {
    for (const pid of gateways[0].pids()) process.kill(pid, 'SIGSTOP');
    await sleep(LASTS_MS);
    for (const pid of gateways[0].pids()) process.kill(pid, 'SIGCONT');
  };
  faults['kill worker'] = async () => {
    process.kill(gateways[1 % gateways.length].workers()[0], 'SIGKILL');
    await sleep(LASTS_MS);
  };
  return faults;
}

const USUAL = [
  ...['kill redis primary', 'kill kafka 1', 'cut redis primary', 'cut kafka 2', 'pause redis primary'],
  ...['pause kafka 3', 'mute redis primary', 'mute kafka 1', 'kill primary', 'kill rabbitmq 1'],
  ...['cut primary', 'cut rabbitmq 2', 'pause primary', 'pause rabbitmq 1', 'kill standby'],
  ...['mute rabbitmq 3', 'mute primary', 'pause gateway', 'kill worker'],
];

const tokens = Object.fromEntries(
  Object.values(cards).flatMap((card) => card.credentials.map((one) => [one.variable, one.inTests])),
);
const [{ inTests: username }, { inTests: password }] = cards.broker.credentials;
const credentials = {
  kv: `Bearer ${cards.kv.credentials[0].inTests}`,
  broker: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
  vector: `Bearer ${cards.vector.credentials[0].inTests}`,
  queue: `Bearer ${cards.queue.credentials[0].inTests}`,
};

/** Gateways know each other by addresses of their own, for the members of consumer groups. */
const documentOf = ({ redis, kafka }, peer, peers) => ({
  http: { port: 0, workers: Number(values.workers) },
  log: { level: 'info' },
  kv: { databases: [redis.settings] },
  broker: {
    clusters: [{ brokers: kafka.brokers, topics: [`${TOPIC}:${PARTITIONS}`] }],
    peers: { listen: peer, addresses: peers, secret: 'laboratory-of-portico-0123456789' },
  },
  vector: { indexes: [{ dimension: DIMENSION }] },
  queue: {
    allowedDestinations: ['127.0.0.1'],
    leaseMs: 5_000,
    sweepIntervalMs: 1_000,
    sweepGraceMs: 5_000,
    circuitFailures: 0,
    maxRetries: 20,
  },
});

async function makeMachines(folder, stops) {
  const p = profile('test');
  makeFolders(p);
  const failed = await installNative(p, undefined, (_, line) => say(line));
  if (failed.size > 0) throw new Error([...failed.values()].join('\n'));
  const runner = await runnerFor(p.run);
  const network = await makeNetwork([
    'pg1',
    'pg2',
    ...['mq', 'kf', 'rd'].flatMap((name) => [1, 2, 3].map((i) => name + i)),
  ]);
  stops.push(() => network.remove());
  const on = (begin) => ({
    ...{ p, runner, folder },
    machines: Object.values(network.machines).filter(({ name }) => name.startsWith(begin)),
  });
  const postgres = new PostgresPair(on('pg'));
  const rabbitmq = new RabbitmqCluster(on('mq'));
  const kafka = new KafkaCluster(on('kf'));
  const redis = new RedisSentinels(on('rd'));
  await Promise.all([
    postgres.start().then(() => say('Postgres: primary and synchronous standby')),
    rabbitmq.start().then(() => say('RabbitMQ: three nodes')),
    kafka.start().then(() => say('Kafka: three brokers')),
    redis.start().then(() => say('Redis: a primary, two replicas, three Sentinels')),
  ]);
  return { postgres, rabbitmq, kafka, redis };
}

async function drive(parts) {
  const { client, destinations } = parts;
  let over = false;
  const isOver = () => over;
  const loads = [KvLoad, VectorLoad, BrokerLoad, QueueLoad].map(
    (Load) => new Load({ client, destinations, isOver, phase: 'l', mayLose: true }),
  );
  const running = Promise.all(loads.map((load) => load.run()));
  const faults = faultsOf(parts);
  const names = values.faults?.split(',') ?? USUAL;
  const rows = [];
  await sleep(PAUSE_MS);
  for (const name of names) {
    if (faults[name] === undefined) throw new Error(`no fault '${name}': ${Object.keys(faults).join(', ')}`);
    say(`fault: ${name}`);
    const from = performance.now();
    await faults[name]();
    say(`healed: ${name}`);
    await sleep(PAUSE_MS);
    const to = performance.now();
    rows.push([name, ...SERVICES.map((service) => (client.silence(service, from, to) / 1_000).toFixed(1))]);
  }
  over = true;
  await running;
  const end = performance.now() + DRAIN_MS;
  const isDrained = async () => {
    for (const load of loads) if (!(await load.drained())) return false;
    return true;
  };
  while (!(await isDrained()) && performance.now() < end) await sleep(300);
  for (const load of loads) await load.end?.();
  for (const load of loads) say(await load.judge());
  console.log(
    `\n| longest silence, s | ${SERVICES.join(' | ')} |\n|---|${SERVICES.map(() => '---|').join('')}`,
  );
  for (const row of rows) console.log(`| ${row.join(' | ')} |`);
  console.log();
}

async function lab(folder) {
  const stops = [];
  process.once('SIGTERM', () => void stops[0]?.().finally(() => process.exit(1)));
  try {
    const clusters = await makeMachines(folder, stops);
    const { postgres, rabbitmq } = clusters;
    const addresses = { PORTICO_DATABASE_URL: postgres.url, PORTICO_RABBITMQ_URL: rabbitmq.url };
    const peers = Array.from({ length: Number(values.gateways) }, (_, i) => `127.0.0.1:${FIRST_PEER + i}`);
    const starts = peers.map((peer) =>
      startGateway(documentOf(clusters, peer, peers), { ...tokens, ...addresses }),
    );
    const gateways = await Promise.all(starts);
    for (const gateway of gateways) stops.push(() => gateway.stop());
    say(`${gateways.length} gateways are ready`);
    const balancer = await startBalancer(gateways.map(({ port }) => port));
    stops.push(() => balancer.stop());
    const destinations = new Destinations();
    await destinations.start();
    stops.push(() => destinations.stop());
    destinations.serveWorkflows({ url: `${balancer.url}/queue`, token: tokens.PORTICO_QUEUE_TOKEN });
    const client = new Client(balancer, credentials);
    await drive({ client, destinations, gateways, ...clusters });
    for (const { log } of gateways)
      for (const [line, count] of log.errors) if (count > 20) say(`log: ${count} x ${line}`);
    for (const [line, count] of client.others) say(`answers: ${count} x ${line}`);
    return [...new Set(client.findings)];
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

async function main() {
  if (process.getuid?.() !== 0) {
    console.log('npm run lab makes network namespaces: as root, with ip (package iproute2)');
    process.exit(1);
  }
  if (!existsSync('dist/main.js')) throw new Error('dist/main.js is missing: npm run build');
  const folder = mkdtempSync(join(tmpdir(), 'portico-lab-'));
  chmodSync(folder, 0o755);
  let findings;
  try {
    findings = await lab(folder);
  } finally {
    if (!values.keep) rmSync(folder, { recursive: true, force: true });
  }
  for (const finding of findings) console.log(`FINDING ${finding}`);
  console.log(`${findings.length === 0 ? SERVICES.length + 1 : 0} passed, ${findings.length} failed`);
  process.exit(findings.length === 0 ? 0 : 1);
}

await main();
