import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { connectedAdmin, removeTopic } from '../broker/servers.mjs';
import { removeFromRabbitmq } from '../queue/gateway.mjs';
import { startServer } from '../server-process.mjs';

const secret = () => randomBytes(24).toString('base64url');
const DIMENSION = 64;
const RECORDS = 20_000;
/** Records of one upsert. */
const BATCH = 2_000;

/**
 * A gateway with all four services and two who may call each: `own`, whose requests are measured, and `other`, who
 * floods. `request` makes the bytes of a request in the name of one of them; `close` removes what was stored.
 */
export async function startSharedGateway() {
  const name = `bench_tenants_${randomBytes(4).toString('hex')}`;
  const tokens = Object.fromEntries(
    ['kv', 'kvOther', 'vector', 'vectorOther', 'queue'].map((n) => [n, secret()]),
  );
  const passwords = { own: secret(), other: secret() };
  const brokers = process.env.PORTICO_KAFKA_BROKERS;
  const admin = await connectedAdmin(brokers);
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic: name, numPartitions: 4 }] });
  const folder = await mkdtemp(join(tmpdir(), 'portico-bench-'));
  const file = join(folder, 'portico.yaml');
  const users = Object.entries(passwords).map(([username, password]) => ({ username, password }));
  const document = {
    http: { port: 0 },
    kv: { databases: [{ token: tokens.kv, readOnlyToken: tokens.kvOther }] },
    vector: {
      database: { schema: `${name}_vector` },
      indexes: [{ dimension: DIMENSION, token: tokens.vector, readOnlyToken: tokens.vectorOther }],
    },
    broker: { clusters: [{ users }] },
    queue: { schema: name, prefix: name, token: tokens.queue, allowedDestinations: ['127.0.0.1'] },
  };
  await writeFile(file, JSON.stringify(document), { mode: 0o600 });
  const keys = [1, 2].map(() => `sig_${secret()}`);
  const { PORTICO_REDIS_URL, PORTICO_DATABASE_URL, PORTICO_RABBITMQ_URL } = process.env;
  const server = await startServer({
    args: ['dist/main.js', '--config', file],
    env: {
      ...(process.env.FLOOD_OPTIONS ? { NODE_OPTIONS: process.env.FLOOD_OPTIONS } : {}),
      PORTICO_REDIS_URL,
      PORTICO_DATABASE_URL,
      PORTICO_RABBITMQ_URL,
      PORTICO_KAFKA_BROKERS: brokers,
      PORTICO_QUEUE_CURRENT_SIGNING_KEY: keys[0],
      PORTICO_QUEUE_NEXT_SIGNING_KEY: keys[1],
    },
    portOf: (line) => Number(/"port":(\d+).*"msg":"listening"/.exec(line)?.[1]) || undefined,
  });
  const credentials = {
    kv: { own: `Bearer ${tokens.kv}`, other: `Bearer ${tokens.kvOther}` },
    vector: { own: `Bearer ${tokens.vector}`, other: `Bearer ${tokens.vectorOther}` },
    broker: { own: basic('own', passwords.own), other: basic('other', passwords.other) },
    queue: { own: `Bearer ${tokens.queue}`, other: `Bearer ${tokens.queue}` },
  };
  /** @param {string} path with the service's own in front */
  const request = (who, path, body, { method = 'POST', headers = [] } = {}) => {
    const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
    const lines = [
      `${method} ${path} HTTP/1.1`,
      'Host: 127.0.0.1',
      `Authorization: ${credentials[path.split('/')[1]][who]}`,
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(text)}`,
      ...headers,
    ];
    return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${text}`);
  };
  const call = async (path, body) => {
    const reply = await fetch(`http://127.0.0.1:${server.port}${path}`, {
      method: 'POST',
      headers: { authorization: credentials[path.split('/')[1]].own, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`);
  };
  await untilReady(server.port);
  await call('/kv', ['RPUSH', name, ...Array(10_000).fill('an entry of a list')]);
  for (let start = 0; start < RECORDS; start += BATCH)
    await call(
      '/vector/upsert',
      Array.from({ length: BATCH }, (_, i) => recordAt(start + i)),
    );
  return {
    ...server,
    topic: name,
    list: name,
    request,
    call,
    close: async () => {
      await call('/kv', ['DEL', name]);
      await server.stop();
      const database = new pg.Client({ connectionString: PORTICO_DATABASE_URL });
      await database.connect();
      for (const schema of [name, `${name}_vector`])
        await database.query(`drop schema if exists ${pg.escapeIdentifier(schema)} cascade`);
      await database.end();
      await removeFromRabbitmq(name);
      await removeTopic(admin, name);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export const vectorAt = (n) =>
  Array.from({ length: DIMENSION }, (_, i) => Math.sin(n * 7.3 + i * (1 + (n % 11))));

const recordAt = (n) => ({ id: `r${n}`, vector: vectorAt(n), metadata: { n, odd: n % 2 === 1 } });

const basic = (name, password) => `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;

async function untilReady(port) {
  for (let tries = 0; tries < 600; tries++) {
    if ((await fetch(`http://127.0.0.1:${port}/readyz`)).ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('the gateway does not get ready');
}
