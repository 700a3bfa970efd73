import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'amqplib';
import pg from 'pg';
import { compiled } from '../../support/compiled.mjs';
import { startServer } from '../server-process.mjs';

/** A gateway of its own with only the queue service, under names of its own, which `stop` removes again. */
export async function startQueueGateway(args = [], onLine = undefined) {
  const name = `bench_queue_${randomBytes(4).toString('hex')}`;
  const signingKeys = [1, 2].map(() => `sig_${randomBytes(24).toString('base64url')}`);
  const token = randomBytes(24).toString('base64url');
  const folder = await mkdtemp(join(tmpdir(), 'portico-bench-'));
  const file = join(folder, 'portico.yaml');
  await writeFile(file, 'http: { port: 0 }\nqueue: { allowedDestinations: ["127.0.0.1"] }\n', {
    mode: 0o600,
  });
  const off = Object.fromEntries(
    ['VECTOR', 'BROKER', 'KV'].map((other) => [`PORTICO_${other}_ENABLED`, 'false']),
  );
  const server = await startServer({
    args: [...args, 'dist/main.js', '--config', file],
    env: {
      ...off,
      PORTICO_QUEUE_PREFIX: name,
      PORTICO_QUEUE_SCHEMA: name,
      PORTICO_QUEUE_TOKEN: token,
      PORTICO_QUEUE_CURRENT_SIGNING_KEY: signingKeys[0],
      PORTICO_QUEUE_NEXT_SIGNING_KEY: signingKeys[1],
      PORTICO_RABBITMQ_URL: process.env.PORTICO_RABBITMQ_URL,
      PORTICO_DATABASE_URL: process.env.PORTICO_DATABASE_URL,
    },
    onLine,
    portOf: (line) => Number(/"port":(\d+).*"msg":"listening"/.exec(line)?.[1]) || undefined,
  });
  await untilReady(server.port);
  const database = new pg.Client({ connectionString: process.env.PORTICO_DATABASE_URL });
  await database.connect();
  return {
    ...server,
    token,
    signingKeys,
    schema: name,
    query: async (sql, values) => (await database.query(sql.replaceAll('$schema', name), values)).rows,
    stop: async () => {
      await server.stop();
      await database.query(`drop schema if exists ${pg.escapeIdentifier(name)} cascade`);
      await database.end();
      await removeFromRabbitmq(name);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function untilReady(port) {
  for (let tries = 0; tries < 600; tries++) {
    if ((await fetch(`http://127.0.0.1:${port}/readyz`)).ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('the gateway does not get ready');
}

export async function removeFromRabbitmq(name) {
  const connection = await connect(process.env.PORTICO_RABBITMQ_URL);
  const channel = await connection.createChannel();
  const { describeTopology } = await compiled('topology', ['services/queue/rabbitmq/topology.js']);
  const { exchanges, queues } = describeTopology(name);
  await Promise.all([
    ...exchanges.map((exchange) => channel.deleteExchange(exchange.name)),
    ...queues.map((queue) => channel.deleteQueue(queue.name)),
  ]);
  await connection.close();
}
