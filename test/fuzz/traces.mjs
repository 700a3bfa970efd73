import amqp from 'amqplib';
import { Redis } from 'ioredis';
import kafkajs from 'kafkajs';
import pg from 'pg';

const DIGITS = Array.from({ length: 31 }, (_, i) => String(i + 1).padStart(2, '0'));
const LEVELS = Array.from({ length: 5 }, (_, level) => level);
const EXCHANGES = ['dead', 'unrouted', 'delivery', ...LEVELS.map((level) => `level-${level}`)];
const QUEUES = ['work', 'dead', 'unrouted', ...LEVELS.flatMap((l) => DIGITS.map((d) => `wait-${l}-${d}`))];

/**
 * Removes what the gateways under test have made in the backends.
 * @param {{schema: string, prefix: string, keys: string, topic: string}} names keys: a pattern
 */
export async function removeTraces({ schema, prefix, keys, topic }) {
  const steps = [removeTables(schema), removeKeys(keys), removeTopic(topic), removeQueues(prefix)];
  for (const { reason } of await Promise.allSettled(steps)) if (reason !== undefined) console.error(reason);
}

async function removeTables(schema) {
  const client = new pg.Client({ connectionString: process.env.PORTICO_DATABASE_URL });
  await client.connect();
  await client.query(
    `drop schema if exists ${schema} cascade; drop schema if exists ${schema}_queue cascade`,
  );
  await client.end();
}

async function removeKeys(match) {
  const redis = new Redis(process.env.PORTICO_REDIS_URL);
  for await (const keys of redis.scanStream({ match, count: 10_000 }))
    if (keys.length > 0) await redis.unlink(...keys);
  redis.disconnect();
}

async function removeTopic(topic) {
  const brokers = process.env.PORTICO_KAFKA_BROKERS.split(',');
  const admin = new kafkajs.Kafka({ brokers, logLevel: kafkajs.logLevel.NOTHING }).admin();
  await admin.connect();
  if ((await admin.listTopics()).includes(topic)) await admin.deleteTopics({ topics: [topic] });
  await admin.disconnect();
}

async function removeQueues(prefix) {
  const connection = await amqp.connect(process.env.PORTICO_RABBITMQ_URL);
  const channel = await connection.createChannel();
  const named = (part) => `${prefix}-v4-${part}`;
  await Promise.all([
    ...EXCHANGES.map((part) => channel.deleteExchange(named(part))),
    ...QUEUES.map((part) => channel.deleteQueue(named(part))),
  ]);
  await connection.close();
}
