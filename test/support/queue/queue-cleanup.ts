import { type ChannelModel, connect } from 'amqplib';
import pg from 'pg';
import { backendAddress } from '../environment.js';

const DIGITS = Array.from({ length: 31 }, (_, index) => String(index + 1).padStart(2, '0'));
const LEVELS = Array.from({ length: 5 }, (_, level) => level);
const EXCHANGES = ['dead', 'unrouted', 'delivery', ...LEVELS.map((level) => `level-${level}`)];
const QUEUES = ['work', 'dead', 'unrouted', ...LEVELS.flatMap((l) => DIGITS.map((d) => `wait-${l}-${d}`))];

/**
 * What the files of a lane, one after the other, have their queues and exchanges in RabbitMQ called by, each with a schema
 * of its own. RabbitMQ takes 5 s of CPU to create the 163 and to delete them again, which fifty files did.
 */
export const SHARED_PREFIX = 'test_queue';

/** Removes the schema of a queue service, and in RabbitMQ its messages and, unless they are shared, its queues and exchanges. */
export async function removeQueueService(schema: string, prefix = SHARED_PREFIX): Promise<void> {
  const connection = await connect(backendAddress('PORTICO_RABBITMQ_URL'));
  const named = (part: string) => `${prefix}-v4-${part}`;
  if (prefix === SHARED_PREFIX) await purge(connection, QUEUES.map(named));
  else {
    const channel = await connection.createChannel();
    // deleting what is not there does nothing
    await Promise.all([
      ...EXCHANGES.map((part) => channel.deleteExchange(named(part))),
      ...QUEUES.map((part) => channel.deleteQueue(named(part))),
    ]);
  }
  await connection.close();
  const client = new pg.Client({ connectionString: backendAddress('PORTICO_DATABASE_URL') });
  await client.connect();
  await client.query(`drop schema if exists ${pg.escapeIdentifier(schema)} cascade`);
  await client.end();
}

/** Empties queues; one that is missing, because the service never came to create it, has no messages. */
async function purge(connection: ChannelModel, queues: readonly string[]): Promise<void> {
  const attempt = async (some: readonly string[]) => {
    const channel = await connection.createChannel();
    // the first that is missing closes the channel, and the calls after it say so
    channel.on('error', () => undefined);
    const results = await Promise.allSettled(some.map((queue) => channel.purgeQueue(queue)));
    return results.every(({ status }) => status === 'fulfilled');
  };
  if (!(await attempt(queues))) for (const queue of queues) await attempt([queue]);
}
