import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import kafkajs from 'kafkajs';
import pg from 'pg';
import { stateDir } from '../state/profile.mjs';

// Wipes what a test has left in the image portico:dev: `docker exec CONTAINER reset`. The gateway goes on; declared topics
// and indexes stay, empty. Offsets of topics go on counting. Signing keys and the schema's version are not touched.

/** Tables of the queue that hold no state of a test. */
const keptTables = ['signing_keys', 'migrations'];

/** @returns {{report: {url: string, urls: Record<string, string>, services: string[]}, env: Record<string, string>}} */
function gateway() {
  return JSON.parse(readFileSync(join(stateDir, 'run/gateway.json'), 'utf8'));
}

/** @returns {Promise<any>} */
async function call(url, method, token, body) {
  const headers = { authorization: token };
  const answer = await fetch(url, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

const bearer = (token) => `Bearer ${token}`;

async function resetKv({ report, env }) {
  await call(report.urls.kv, 'POST', bearer(env.PORTICO_KV_TOKEN), ['FLUSHDB']);
}

async function resetVector({ report, env }) {
  await call(`${report.urls.vector}/reset?all`, 'DELETE', bearer(env.PORTICO_VECTOR_TOKEN));
}

/** What is under way is cancelled by the service; what it remembers of the past is then dropped. */
async function resetQueue({ report, env }) {
  const cancel = () => call(`${report.urls.queue}/v2/messages`, 'DELETE', bearer(env.PORTICO_QUEUE_TOKEN));
  while ((await cancel()).cancelled > 0);
  const client = new pg.Client({ connectionString: env.PORTICO_DATABASE_URL });
  await client.connect();
  try {
    const { rows } = await client.query(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables
       where schemaname = 'portico_queue' and tablename <> all($1)`,
      [keptTables],
    );
    await client.query(`truncate ${rows.map(({ name }) => name).join(', ')}`);
  } finally {
    await client.end();
  }
}

/** Consumers leave their groups, which can then be deleted; topics stay and their records go. */
async function resetBroker({ report, env }) {
  const login = `${env.PORTICO_BROKER_USERNAME}:${env.PORTICO_BROKER_PASSWORD}`;
  const basic = `Basic ${Buffer.from(login).toString('base64')}`;
  for (const { name: group, instances } of await call(`${report.urls.broker}/consumers`, 'GET', basic))
    for (const { name } of instances)
      await call(
        `${report.urls.broker}/delete-consumer/${encodeURIComponent(group)}/${encodeURIComponent(name)}`,
        'DELETE',
        basic,
      );
  const kafka = new kafkajs.Kafka({
    brokers: env.PORTICO_KAFKA_BROKERS.split(','),
    logLevel: kafkajs.logLevel.NOTHING,
  });
  const admin = kafka.admin();
  await admin.connect();
  try {
    const topics = (await admin.listTopics()).filter((name) => !name.startsWith('__'));
    for (const topic of topics) {
      const partitions = (await admin.fetchTopicOffsets(topic)).filter(({ low, high }) => low !== high);
      const ends = partitions.map(({ partition, high }) => ({ partition, offset: high }));
      if (ends.length > 0) await admin.deleteTopicRecords({ topic, partitions: ends });
    }
    const { groups } = await admin.listGroups();
    if (groups.length > 0) await admin.deleteGroups(groups.map(({ groupId }) => groupId));
  } finally {
    await admin.disconnect();
  }
}

const resets = { kv: resetKv, vector: resetVector, broker: resetBroker, queue: resetQueue };
const note = gateway();
await Promise.all(note.report.services.map((name) => resets[name]?.(note)));
