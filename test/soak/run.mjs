import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { backends } from '../../compose/backends/backends.mjs';
import { cards } from '../../compose/state/services.mjs';
import { removeTraces } from '../fuzz/traces.mjs';
import { startRelay } from '../support/tcp-relay.ts';
import { Client } from './client.mjs';
import { makeFaults, ORDER } from './faults.mjs';
import { startGateway } from './gateway.mjs';
import { BrokerLoad, PARTITIONS, TOPIC } from './loads/broker.mjs';
import { Churn } from './loads/churn.mjs';
import { Destinations } from './loads/destinations.mjs';
import { KvLoad } from './loads/kv.mjs';
import { QueueLoad } from './loads/queue.mjs';
import { DIMENSION, VectorLoad } from './loads/vector.mjs';
import { atRest, untilAtRest } from './rest.mjs';
import { svgOf } from './svg.mjs';
import { Watch } from './watch.mjs';

// npm run soak -- [--minutes 30] [--out FOLDER]: all services under a mixed load, with a fault a minute, and what stays behind.

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    seconds: { type: 'string' },
    /** Between two faults, in s. */
    every: { type: 'string', default: '60' },
    lasts: { type: 'string', default: '4' },
    /** Names with commas between them, in turn. */
    faults: { type: 'string', default: ORDER.join(',') },
    workers: { type: 'string', default: '2' },
    /** How long nobody asks for anything before each look at what the gateway holds, in s. */
    idle: { type: 'string' },
    out: { type: 'string' },
  },
});

const NAMES = { schema: 'portico_soak', prefix: 'soak', keys: 'soak:*', topic: TOPIC };
const SCHEMAS = [NAMES.schema, `${NAMES.schema}_queue`];
const WORKERS = Number(values.workers);
const MAIN_MS = Number(values.seconds ?? Number(values.minutes) * 60) * 1_000;
/** From here on there is time to wait until idle connections are closed, and curves are long enough to be judged. */
const IS_LONG = MAIN_MS >= 240_000;
const WARM_MS = IS_LONG ? 45_000 : 3_000;
/** A pool keeps an idle connection for a minute. */
const IDLE_MS = Number(values.idle ?? (IS_LONG ? 65 : 0)) * 1_000;
const REST_MS = 90_000;
const DRAIN_MS = 180_000;
const SERVICES = ['kv', 'vector', 'broker', 'queue'];
/** How much longer a silence may begin or end than its fault. */
const AFTER_MS = 20_000;
const GROWTH = 1.25;
const GROWTH_MIB = 24;

const begun = performance.now();
const say = (line) =>
  console.log(`${((performance.now() - begun) / 1_000).toFixed(1).padStart(7)} s  ${line}`);

const credentials = Object.fromEntries(
  SERVICES.map((name) => {
    const [login, password] = cards[name].credentials;
    const pair = Buffer.from(`${login.inTests}:${password?.inTests}`).toString('base64');
    return [name, login.made.as === 'name' ? `Basic ${pair}` : `Bearer ${login.inTests}`];
  }),
);

/** The backends of the tests that run, else some of this program's own. */
async function startBackends() {
  const running = process.env.PORTICO_TEST_PROFILE;
  const set = await backends(running ?? 'test-soak');
  if (running !== undefined) return { set, stop: async () => undefined };
  await set.stop();
  await set.reset();
  const rows = await set.start(undefined, (name, line) => say(`${name}: ${line}`));
  const failed = Object.entries(rows).filter(([, row]) => row.state === 'failed');
  if (failed.length > 0) throw new Error(failed.map(([name, row]) => `${name}: ${row.reason}`).join('\n'));
  return {
    set,
    stop: async () => {
      await set.stop();
      await set.reset();
    },
  };
}

/** Relays in front of the backends whose addresses clients do not learn from themselves. */
async function startRelays(urls) {
  const behind = async (variable) => {
    const url = new URL(urls[variable]);
    const relay = await startRelay(Number(url.port));
    url.port = String(relay.port);
    return { relay, address: url.href };
  };
  const [redis, postgres, rabbitmq] = await Promise.all(
    ['PORTICO_REDIS_URL', 'PORTICO_DATABASE_URL', 'PORTICO_RABBITMQ_URL'].map(behind),
  );
  return {
    relays: { redis: redis.relay, postgres: postgres.relay, rabbitmq: rabbitmq.relay },
    addresses: {
      ...urls,
      PORTICO_REDIS_URL: redis.address,
      PORTICO_DATABASE_URL: postgres.address,
      PORTICO_RABBITMQ_URL: rabbitmq.address,
    },
    ports: {
      redis: redis.relay.port,
      postgres: postgres.relay.port,
      rabbitmq: rabbitmq.relay.port,
      kafka: Number(urls.PORTICO_KAFKA_BROKERS.split(':')[1]),
    },
  };
}

/** Everything that waits for a time waits for a short one, so that a fault is over within its minute. */
const document = {
  http: { port: 0, workers: WORKERS },
  log: { level: 'info' },
  vector: {
    database: { schema: SCHEMAS[0] },
    indexes: [{ name: 'soak', dimension: DIMENSION }],
  },
  broker: { clusters: [{ topics: [`${TOPIC}:${PARTITIONS}`], idleTimeoutMs: 8_000 }] },
  queue: {
    schema: SCHEMAS[1],
    prefix: NAMES.prefix,
    allowedDestinations: ['127.0.0.1'],
    leaseMs: 3_000,
    sweepIntervalMs: 1_000,
    sweepGraceMs: 3_000,
    logRetention: 60,
    circuitFailures: 0,
    maxRetries: 20,
  },
};

const tokens = () =>
  Object.fromEntries(
    Object.values(cards).flatMap((card) => card.credentials.map((one) => [one.variable, one.inTests])),
  );

/** Runs all loads for a time, and on until all that was accepted has arrived. */
async function phase(name, forMs, parts, beside) {
  const { client } = parts;
  const until = performance.now() + forMs;
  const isOver = () => performance.now() > until;
  const loads = [KvLoad, VectorLoad, BrokerLoad, QueueLoad].map(
    (Load) => new Load({ ...parts, isOver, phase: name }),
  );
  const churn = new Churn({ client, isOver });
  await Promise.all([...loads.map((load) => load.run()), churn.run(), beside?.(until)]);
  say(`phase ${name}: nothing more is sent`);
  await parts.gateway.ready();
  const end = performance.now() + DRAIN_MS;
  const isDrained = async () => {
    for (const load of loads) if (!(await load.drained())) return false;
    return true;
  };
  while (!(await isDrained()) && performance.now() < end) await sleep(300);
  for (const load of loads) await load.end?.();
  for (const load of loads) say(await load.judge());
  say(`clients that came, left or stalled: ${churn.visits}`);
  await client.rest();
}

/** What a run left on the way: memory and tables that grow from the second fifth to the last. */
function growing(curves) {
  const watched = [
    ['memory', 'RSS'],
    ['handles', 'files'],
    ['handles', 'timers'],
  ];
  return watched.flatMap(([picture, name]) => {
    const points = curves[picture]?.[name] ?? [];
    const part = (from) => median(points.slice(points.length * from, points.length * (from + 0.2)));
    const [early, late] = [part(0.2), part(0.8)];
    if (late <= early * GROWTH + (name === 'RSS' ? GROWTH_MIB : 20)) return [];
    return [`${picture}: ${name} grows from ${Math.round(early)} to ${Math.round(late)}`];
  });
}

function median(points) {
  const sorted = points.map(({ value }) => value).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** Longest silence of each service around each fault. */
function printSilences(client, faults, sentUntil) {
  const worst = new Map();
  for (const { name, from, to } of faults) {
    const row = worst.get(name) ?? Object.fromEntries(SERVICES.map((service) => [service, 0]));
    for (const service of SERVICES)
      row[service] = Math.max(
        row[service],
        client.silence(service, from, Math.min(to + AFTER_MS, sentUntil)) / 1_000,
      );
    worst.set(name, row);
  }
  console.log(
    `\n| longest silence, s | ${SERVICES.join(' | ')} |\n|---|${SERVICES.map(() => '---|').join('')}`,
  );
  for (const [name, row] of worst)
    console.log(`| ${name} | ${SERVICES.map((service) => row[service].toFixed(1)).join(' | ')} |`);
  console.log();
}

const UNITS = {
  memory: 'MiB',
  connections: 'sockets by backend',
  handles: 'open files and timers',
  tables: 'MiB of all tables',
  rabbitmq: 'queues and tickets',
  disk: 'MiB by backend',
};

function writeCurves(watch, faults, folder) {
  mkdirSync(folder, { recursive: true });
  const marks = faults.map(({ name, from }) => ({ name, at: watch.seconds(from) }));
  for (const [picture, curves] of Object.entries(watch.curves))
    writeFileSync(
      join(folder, `soak-${picture}.svg`),
      svgOf({ title: picture, unit: UNITS[picture], curves, faults: marks }),
    );
  say(`curves are in ${folder}`);
}

/** Connections that a pool may have filled since the first rest. */
const spare = IS_LONG
  ? { redis: 2 * WORKERS, postgres: 2 * WORKERS, rabbitmq: 0, kafka: 4 * WORKERS }
  : { redis: 8 * WORKERS, postgres: 22 * WORKERS, rabbitmq: 0, kafka: 8 * WORKERS };

async function soak(set) {
  const { relays, addresses, ports } = await startRelays(set.urls());
  const destinations = new Destinations();
  await destinations.start();
  const gateway = await startGateway(document, { ...tokens(), ...addresses });
  destinations.serveWorkflows({ url: `${gateway.url}/queue`, token: cards.queue.credentials[0].inTests });
  const client = new Client(gateway, credentials);
  const watch = new Watch({ gateway, set, ports, schemas: SCHEMAS, prefix: NAMES.prefix });
  const parts = { client, gateway, destinations };
  try {
    await phase('a', WARM_MS, parts);
    await sleep(IDLE_MS);
    const first = { ...(await atRest(watch)), groups: [] };
    say(`at rest: ${JSON.stringify(first)}`);
    watch.begun = performance.now();
    watch.start(Math.max(1_000, MAIN_MS / 600));
    let faults = [];
    let sentUntil = 0;
    await phase('b', MAIN_MS, parts, async (untilMs) => {
      sentUntil = untilMs;
      const plan = { everyMs: Number(values.every) * 1_000, lastsMs: Number(values.lasts) * 1_000 };
      faults = await makeFaults(
        { set, relays, gateway },
        { ...plan, names: values.faults.split(','), untilMs, say },
      );
    });
    await watch.end();
    await sleep(IDLE_MS);
    const { now, findings } = await untilAtRest(watch, first, {
      limitMs: REST_MS,
      spare,
      say,
      few: IS_LONG ? 4 : 16,
    });
    say(`at rest: ${JSON.stringify(now)}`);
    client.findings.push(...findings, ...(IS_LONG ? growing(watch.curves) : []));
    printSilences(client, faults, sentUntil);
    if (values.out !== undefined) writeCurves(watch, faults, values.out);
  } finally {
    await watch.end();
    const left = gateway.hasExited();
    if (left !== undefined)
      client.findings.push(`the gateway ended by itself: ${left}\n${gateway.log.last.join('\n')}`);
    const code = await gateway.stop();
    if (left === undefined && code !== 0) client.findings.push(`the gateway ends with ${code}`);
    await destinations.stop();
    await Promise.all(Object.values(relays).map((relay) => relay.stop()));
  }
  for (const [line, count] of gateway.log.errors) say(`log: ${count} x ${line}`);
  for (const [line, count] of client.others) say(`answers: ${count} x ${line}`);
  return client.findings;
}

async function main() {
  if (!existsSync('dist/main.js')) throw new Error('dist/main.js is missing: npm run build');
  const { set, stop } = await startBackends();
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.once(signal, () =>
      removeTraces(NAMES)
        .then(stop)
        .finally(() => process.exit(1)),
    );
  Object.assign(process.env, set.urls());
  let findings;
  try {
    findings = await soak(set);
  } finally {
    await removeTraces(NAMES);
    await stop();
  }
  const different = [...new Set(findings)];
  for (const finding of different.slice(0, 50)) console.log(`FINDING ${finding}`);
  const checks = SERVICES.length + 2;
  console.log(`${different.length === 0 ? checks : 0} passed, ${different.length} failed`);
  process.exit(different.length === 0 ? 0 : 1);
}

await main();
