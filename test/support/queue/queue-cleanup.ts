import { connect } from 'amqplib';
import pg from 'pg';
import { backendAddress } from '../environment.js';

const DIGITS = Array.from({ length: 31 }, (_, index) => String(index + 1).padStart(2, '0'));
const LEVELS = Array.from({ length: 5 }, (_, level) => level);
const EXCHANGES = ['dead', 'unrouted', 'delivery', ...LEVELS.map((level) => `level-${level}`)];
const QUEUES = ['work', 'dead', 'unrouted', ...LEVELS.flatMap((l) => DIGITS.map((d) => `wait-${l}-${d}`))];

/** Removes the exchanges, queues and the schema of a queue service that ran under these names. */
export async function removeQueueService(prefix: string, schema: string): Promise<void> {
  const connection = await connect(backendAddress('PORTICO_RABBITMQ_URL'));
  const channel = await connection.createChannel();
  const named = (part: string) => `${prefix}-v4-${part}`;
  // deleting what is not there does nothing
  await Promise.all([
    ...EXCHANGES.map((part) => channel.deleteExchange(named(part))),
    ...QUEUES.map((part) => channel.deleteQueue(named(part))),
  ]);
  await connection.close();
  const client = new pg.Client({ connectionString: backendAddress('PORTICO_DATABASE_URL') });
  await client.connect();
  await client.query(`drop schema if exists ${pg.escapeIdentifier(schema)} cascade`);
  await client.end();
}
