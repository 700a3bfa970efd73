import { randomBytes } from 'node:crypto';
import { connect } from 'amqplib';
import { compare } from '../frame.mjs';
import { Latencies } from '../latencies.mjs';
import { startQueueGateway } from './gateway.mjs';

/** Which backends must run, by their names in `compose/backends/backends.mjs`. */
export const backends = ['rabbitmq', 'postgres'];

const BODY = Buffer.alloc(1_024, 'x');
/** 32^3 units of 125 ms: one level, and nothing is delivered while the bench runs. */
const DELAY_S = 4_096;
const GOAL = 0.5;

/**
 * Publishes of 1 KiB, confirmed, through the gateway against bare amqplib with as many confirms in flight.
 * @param {import('../frame.mjs').Load} load
 */
export async function run(load) {
  const gateway = await startQueueGateway();
  const reference = await openReference();
  const request = publishRequest(gateway.token);
  const session = {
    request: () => request,
    isRight: (status, body) => status === 200 && body.includes('"messageId":"msg_'),
  };
  const contenders = [
    { name: 'amqplib', server: thisProcess, run: reference.publish },
    { name: 'Portico', server: gateway, session: () => session, goal: { ratio: GOAL } },
  ];
  try {
    const title = 'queue: publish of 1 KiB, confirmed, not due while the bench runs';
    return await compare({ title, contenders, connections: 64, unit: 'message' }, load);
  } finally {
    await reference.close();
    await gateway.stop();
  }
}

/** amqplib works in the process of the bench. */
const thisProcess = {
  cpuSeconds: () => (process.cpuUsage().user + process.cpuUsage().system) / 1e6,
  rssMegabytes: () => process.memoryUsage.rss() / 2 ** 20,
};

function publishRequest(token) {
  return Buffer.concat([
    Buffer.from(
      `POST /queue/v2/publish/http://127.0.0.1:9/bench HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n` +
        `Upstash-Delay: ${DELAY_S}s\r\nContent-Type: text/plain\r\nContent-Length: ${BODY.length}\r\n\r\n`,
    ),
    BODY,
  ]);
}

async function openReference() {
  const connection = await connect(process.env.PORTICO_RABBITMQ_URL, { noDelay: true });
  const channel = await connection.createConfirmChannel();
  const queue = `bench_${randomBytes(6).toString('hex')}`;
  await channel.assertQueue(queue, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
  return {
    publish: async ({ connections, seconds }) => {
      const end = performance.now() + seconds * 1_000;
      const run = { requests: 0, wrong: 0, seconds: 0, latencies: new Latencies() };
      const one = async () => {
        while (performance.now() < end) {
          const sentAt = performance.now();
          await new Promise((resolve, reject) =>
            channel.sendToQueue(queue, BODY, { persistent: true }, (error) =>
              error ? reject(error) : resolve(),
            ),
          );
          run.latencies.add((performance.now() - sentAt) * 1_000);
          run.requests += 1;
        }
      };
      const started = performance.now();
      await Promise.all(Array.from({ length: connections }, one));
      run.seconds = (performance.now() - started) / 1_000;
      await channel.purgeQueue(queue);
      return run;
    },
    close: async () => {
      await channel.deleteQueue(queue);
      await connection.close();
    },
  };
}
