import { connect } from 'amqplib';
import pg from 'pg';
import { backendAddress } from './environment.js';

/** More than a layout has: deleting what is not there does nothing. */
const LEVELS = Array.from({ length: 32 }, (_, level) => String(level).padStart(2, '0')).flatMap((level) => [
  `level-${level}`,
  `enter-${level}`,
]);

/** Removes the exchanges, queues and the schema of a queue service that ran under these names. */
export async function removeQueueService(prefix: string, schema: string): Promise<void> {
  const connection = await connect(backendAddress('PORTICO_RABBITMQ_URL'));
  const channel = await connection.createChannel();
  const names = ['work', 'dead', 'unrouted', 'delivery', ...LEVELS].map((part) => `${prefix}-v2-${part}`);
  await Promise.all(names.flatMap((name) => [channel.deleteQueue(name), channel.deleteExchange(name)]));
  await connection.close();
  const client = new pg.Client({ connectionString: backendAddress('PORTICO_DATABASE_URL') });
  await client.connect();
  await client.query(`drop schema if exists ${pg.escapeIdentifier(schema)} cascade`);
  await client.end();
}
