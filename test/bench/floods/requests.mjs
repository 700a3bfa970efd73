import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { connectedAdmin, removeTopic } from '../broker/servers.mjs';
import { removeFromRabbitmq } from '../queue/gateway.mjs';

const DIMENSION = 256;
const RECORDS = 1_000;
const ELEMENTS = 200_000;
const MESSAGES = 30;

const vectorAt = (n) => Array.from({ length: DIMENSION }, (_, i) => Math.sin(n * 7.3 + i * (1 + (n % 11))));

const QUERY = { vector: vectorAt(1), topK: RECORDS, includeVectors: true, includeMetadata: true };
const IDS = { ids: Array.from({ length: RECORDS }, (_, i) => `r${i}`), includeVectors: true };

/**
 * What is asked for, and how: so many connections that send so many requests each before they read.
 * @typedef {{ name: string, service: string, path: string, method?: string, body?: unknown, connections: number, each: number }} Flood
 * @type {readonly Flood[]}
 */
export const FLOODS = [
  ...shapes('vector query, 5 MB', { service: 'vector', path: '/query', body: QUERY }, [
    [1, 2_000],
    [64, 30],
  ]),
  ...shapes('vector fetch, 5 MB', { service: 'vector', path: '/fetch', body: IDS }, [[16, 125]]),
  ...shapes('broker fetch, 1 MB', { service: 'broker', path: '/fetch' }, [
    [1, 2_000],
    [8, 250],
  ]),
  ...shapes('queue events, 5 MB', { service: 'queue', path: '/v2/events?count=1000', method: 'GET' }, [
    [1, 2_000],
    [8, 250],
  ]),
  ...shapes('kv LRANGE, 5 MB', { service: 'kv', path: '' }, [
    [8, 1],
    [8, 30],
    [1, 240],
    [150, 8],
  ]),
];

function shapes(name, request, counts) {
  return counts.map(([connections, each]) => ({
    ...request,
    name: `${name}, ${connections} x ${each}`,
    connections,
    each,
  }));
}

const secret = () => randomBytes(24).toString('base64url');
const basic = (name, password) => `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;

/** Names and data that all floods share, and what their requests are in the name of `own` or `other`. */
export async function prepare() {
  const name = `bench_floods_${randomBytes(4).toString('hex')}`;
  const { PORTICO_REDIS_URL, PORTICO_DATABASE_URL, PORTICO_RABBITMQ_URL, PORTICO_KAFKA_BROKERS } =
    process.env;
  const admin = await connectedAdmin(PORTICO_KAFKA_BROKERS);
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic: name, numPartitions: 2 }] });
  const tokens = { own: secret(), other: secret() };
  const roles = { token: tokens.own, readOnlyToken: tokens.other };
  const users = Object.entries(tokens).map(([username, password]) => ({ username, password }));
  const document = {
    http: { port: 0 },
    log: { level: 'info' },
    kv: { databases: [roles] },
    vector: { database: { schema: `${name}_vector` }, indexes: [{ dimension: DIMENSION, ...roles }] },
    broker: { clusters: [{ users }] },
    // messages that wait for long
    queue: { schema: name, prefix: name, token: tokens.own, readOnlyToken: tokens.other },
  };
  const keys = [1, 2].map(() => `sig_${secret()}`);
  const environment = {
    ...(process.env.FLOOD_OPTIONS ? { NODE_OPTIONS: process.env.FLOOD_OPTIONS } : {}),
    PORTICO_REDIS_URL,
    PORTICO_DATABASE_URL,
    PORTICO_RABBITMQ_URL,
    PORTICO_KAFKA_BROKERS,
    PORTICO_QUEUE_CURRENT_SIGNING_KEY: keys[0],
    PORTICO_QUEUE_NEXT_SIGNING_KEY: keys[1],
  };
  const loginOf = (service, who) =>
    service === 'broker' ? basic(who, tokens[who]) : `Bearer ${tokens[who]}`;
  const bodies = {
    broker: { topic: name, partition: 0, offset: 0 },
    kv: ['LRANGE', name, '0', '-1'],
  };
  const small = {
    kv: { path: '', body: ['GET', 'none'] },
    vector: { path: '/query', body: { vector: vectorAt(1), topK: 10 } },
    broker: { path: '/fetch', body: { topic: name, partition: 1, offset: 0 } },
    queue: { path: '/v2/keys', method: 'GET' },
  };
  const filled = new Set();
  return {
    document,
    environment,
    request: (flood, who, connection) => {
      const { service } = flood;
      const { path, method = 'POST', body } = who === 'own' ? small[service] : flood;
      const text = method === 'GET' ? '' : JSON.stringify(body ?? bodies[service]);
      return Buffer.from(
        `${method} /${service}${path} HTTP/1.1\r\nHost: x\r\nConnection: ${connection}\r\n` +
          `Authorization: ${loginOf(service, who)}\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
      );
    },
    fill: async ({ service }, gateway) => {
      if (filled.has(service)) return;
      filled.add(service);
      await FILL[service](name, async (path, body, headers = {}) => {
        const reply = await fetch(`${gateway.url}/${service}${path}`, {
          method: 'POST',
          headers: { authorization: loginOf(service, 'own'), ...headers },
          body: typeof body === 'string' ? body : JSON.stringify(body),
        });
        if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`);
      });
    },
    remove: async () => {
      const { Redis } = await import('ioredis');
      const redis = new Redis(PORTICO_REDIS_URL);
      await redis.unlink(name);
      redis.disconnect();
      const database = new pg.Client({ connectionString: PORTICO_DATABASE_URL });
      await database.connect();
      for (const schema of [name, `${name}_vector`])
        await database.query(`drop schema if exists ${pg.escapeIdentifier(schema)} cascade`);
      await database.end();
      await removeFromRabbitmq(name);
      await removeTopic(admin, name);
    },
  };
}

const FILL = {
  kv: async (name, call) => {
    const values = Array(10_000).fill('an entry of a list');
    for (let done = 0; done < ELEMENTS; done += values.length) await call('', ['RPUSH', name, ...values]);
  },
  vector: async (_, call) => {
    for (let start = 0; start < RECORDS; start += 250)
      await call(
        '/upsert',
        Array.from({ length: 250 }, (_, i) => ({
          id: `r${start + i}`,
          vector: vectorAt(start + i),
          metadata: { n: start + i },
        })),
      );
  },
  broker: async (name, call) => {
    const value = 'x'.repeat(100);
    await call(
      `/produce/${name}`,
      Array.from({ length: 10_000 }, (_, i) => ({ value: `${i} ${value}`, partition: 0 })),
    );
    await call(`/produce/${name}`, { value, partition: 1 });
  },
  queue: async (_, call) => {
    for (let i = 0; i < MESSAGES; i++)
      await call('/v2/publish/https://floods.invalid/', 'x'.repeat(1_000_000), { 'Upstash-Delay': '5d' });
  },
};
