import { randomBytes } from 'node:crypto';
import { connect } from 'amqplib';
import { drive } from './load.mjs';
import { startQueueGateway } from './queue-gateway.mjs';

/** Which backends must run, by their names in `compose/backends.mjs`. */
export const backends = ['rabbitmq', 'postgres'];

const BODY = Buffer.alloc(1_024, 'x');
/** 2^15 units of 125 ms: one level, and nothing is delivered while the bench runs. */
const DELAY_S = 4_096;
const GOAL = 0.5;

/**
 * Publishes of 1 KiB, confirmed, through the gateway against bare amqplib with as many confirms in flight.
 * @param {{ rounds: number, seconds: number, connections: number }} load
 */
export async function run(given) {
  const load = { rounds: 5, seconds: 5, connections: 64, ...given };
  const gateway = await startQueueGateway();
  const reference = await openReference();
  const rates = { amqplib: [], portico: [] };
  const cpu = { seconds: 0, requests: 0 };
  let wrong = 0;
  try {
    for (let round = 0; round < load.rounds; round++) {
      rates.amqplib.push(await reference.publish(load));
      const before = gateway.cpuSeconds();
      const request = publishRequest(gateway.token);
      const result = await drive({ ...load, port: gateway.port, request, expectedBody: hasId });
      cpu.seconds += gateway.cpuSeconds() - before;
      cpu.requests += result.requests;
      rates.portico.push(result.requests / result.seconds);
      wrong += result.wrong;
      console.log(
        `round ${round + 1}: amqplib ${Math.round(rates.amqplib.at(-1))}/s, Portico ${Math.round(rates.portico.at(-1))}/s, ` +
          `p50 ${result.latencies.quantile(0.5)} ms, p99 ${result.latencies.quantile(0.99)} ms`,
      );
    }
  } finally {
    await reference.close();
    await gateway.stop();
  }
  const ratios = rates.portico.map((rate, i) => rate / rates.amqplib[i]).sort((a, b) => a - b);
  const ratio = ratios[Math.floor(ratios.length / 2)];
  console.log(
    `queue: publish of 1 KiB, ${load.connections} at once: ratio ${ratio.toFixed(2)} (goal ${GOAL}, ` +
      `${ratio >= GOAL ? 'reached' : 'MISSED'}), ${((cpu.seconds * 1e6) / cpu.requests).toFixed(0)} µs of CPU a publish, ${wrong} wrong replies`,
  );
  return wrong === 0;
}

const hasId = (body) => body.includes('"messageId":"msg_');

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
      let count = 0;
      const one = async () => {
        while (performance.now() < end) {
          await new Promise((resolve, reject) =>
            channel.sendToQueue(queue, BODY, { persistent: true }, (error) =>
              error ? reject(error) : resolve(),
            ),
          );
          count += 1;
        }
      };
      const started = performance.now();
      await Promise.all(Array.from({ length: connections }, one));
      const rate = (count * 1_000) / (performance.now() - started);
      await channel.purgeQueue(queue);
      return rate;
    },
    close: async () => {
      await channel.deleteQueue(queue);
      await connection.close();
    },
  };
}
