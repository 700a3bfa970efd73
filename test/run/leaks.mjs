import { setTimeout as sleep } from 'node:timers/promises';
import { taggedWith } from '../../compose/processes/process-table.mjs';
import { signalAll } from '../../compose/processes/processes.mjs';

/** What may still be closing when the last test has ended: connections' queues, a process about to exit. */
const graceMs = 3_000;

/** Of the queues and exchanges that the test files of a lane share, and that end with its RabbitMQ. */
const sharedPrefix = 'test_queue-v4-';

async function redisLeaks(url) {
  const { Redis } = await import('ioredis');
  const client = new Redis(url, { maxRetriesPerRequest: 1, retryStrategy: () => null });
  client.on('error', () => undefined);
  try {
    const found = [];
    for (const [, db, count] of (await client.info('keyspace')).matchAll(/^db(\d+):keys=(\d+)/gm)) {
      await client.select(Number(db));
      // One name is enough to tell whose they are.
      found.push(`Redis has ${count} keys in database ${db}, one of them ${await client.randomkey()}`);
    }
    return found;
  } finally {
    client.disconnect();
  }
}

const postgresQuery = `
  select 'schema ' || nspname as left_over from pg_namespace
    where nspname !~ '^pg_' and nspname not in ('information_schema', 'public')
  union all
  select 'table public.' || relname from pg_class
    where relkind in ('r', 'p', 'v', 'm', 'S') and relnamespace = 'public'::regnamespace
  union all
  select 'database ' || datname from pg_database
    where datname not in ('postgres', 'template0', 'template1', 'portico')`;

async function postgresLeaks(url) {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  await client.connect();
  try {
    const { rows } = await client.query(postgresQuery);
    return rows.map((row) => `Postgres has the ${row.left_over}`);
  } finally {
    await client.end();
  }
}

async function kafkaLeaks(brokers) {
  const { default: kafkajs } = await import('kafkajs');
  const kafka = new kafkajs.Kafka({ brokers: brokers.split(','), logLevel: kafkajs.logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  try {
    const topics = await admin.listTopics();
    return topics.filter((name) => !name.startsWith('__')).map((name) => `Kafka has the topic ${name}`);
  } finally {
    await admin.disconnect();
  }
}

async function rabbitmqLeaks(address, managementPort) {
  const { username, password } = new URL(address);
  const headers = { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
  const names = async (kind) => {
    const url = `http://127.0.0.1:${managementPort}/api/${kind}?columns=name`;
    const answer = await fetch(url, { headers, signal: AbortSignal.timeout(5_000) });
    if (!answer.ok) throw new Error(`the management interface answers ${answer.status}`);
    const rows = /** @type {{name: string}[]} */ (await answer.json());
    return rows.map((row) => row.name);
  };
  const left = async (kind) => (await names(kind)).filter((name) => !name.startsWith(sharedPrefix));
  const exchanges = (await left('exchanges')).filter((name) => name !== '' && !name.startsWith('amq.'));
  return [
    ...(await left('queues')).map((name) => `RabbitMQ has the queue ${name}`),
    ...exchanges.map((name) => `RabbitMQ has the exchange ${name}`),
  ];
}

/** Asks until nothing is left over or the grace period is over. A backend that does not answer is a finding as well. */
async function settled(name, ask) {
  const deadline = Date.now() + graceMs;
  for (;;) {
    const found = await ask().catch((error) => [`${name} does not answer after the tests: ${error.message}`]);
    if (found.length === 0 || Date.now() > deadline) return found;
    await sleep(250);
  }
}

/**
 * What the tests left behind in the backends and among the processes. Forgotten processes are ended.
 * @param {import('../../compose/native/backend-set.mjs').BackendSet & {profile: import('../../compose/state/profile.mjs').Profile}} set
 * @param {string[]} names the backends that the tests used
 * @param {string} mark the variable, `NAME=value`, that every process of the test run carries
 * @returns {Promise<string[]>} one line each; empty when all is clean
 */
export async function findLeaks(set, names, mark) {
  const urls = set.urls();
  const processes = async () => taggedWith(mark).map((row) => `process ${row.pid} of the tests still runs`);
  const asked = {
    redis: () => settled('Redis', () => redisLeaks(urls.PORTICO_REDIS_URL)),
    postgres: () => settled('Postgres', () => postgresLeaks(urls.PORTICO_DATABASE_URL)),
    kafka: () => settled('Kafka', () => kafkaLeaks(urls.PORTICO_KAFKA_BROKERS)),
    rabbitmq: () =>
      settled('RabbitMQ', () =>
        rabbitmqLeaks(urls.PORTICO_RABBITMQ_URL, set.profile.ports.rabbitmqManagement),
      ),
  };
  const found = await Promise.all([
    ...names.map((name) => asked[name]()),
    settled('The process table', processes),
  ]);
  signalAll(taggedWith(mark), 'SIGKILL');
  return found.flat();
}
