import { noneWrong, printGoal } from '../frame.mjs';
import { Latencies } from '../latencies.mjs';
import { ask } from './gateway.mjs';
import { withBrokerServers } from './servers.mjs';

export const backends = ['kafka'];

const P50_MS = 15;

/**
 * From the start of a produce to the reply of a consume that waits for its record.
 * @param {import('../frame.mjs').Load} load
 */
export function run({ requests = 500 }) {
  return withBrokerServers(async ({ topic, group, gateway, authorization }) => {
    const mine = group();
    const call = async (path) => {
      const { status, text } = await ask(gateway.port, `/broker${path}`, { authorization }, 'GET');
      if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
      return JSON.parse(text);
    };
    const consume = (timeout) => call(`/consume/${mine}/one/${topic}?timeout=${timeout}`);
    await consume(3_000);
    const latencies = new Latencies();
    let wrong = 0;
    for (let i = 0; i < requests; i++) {
      const waiting = consume(10_000);
      // so that the consume waits in every phase of the gateway's own wait
      await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 20));
      const startedAt = performance.now();
      await call(`/produce/${topic}/hello${i}`);
      const records = await waiting;
      latencies.add((performance.now() - startedAt) * 1_000);
      if (records.length !== 1 || records[0].value !== `hello${i}`) wrong += 1;
    }
    const [p50, p99] = [latencies.quantile(0.5), latencies.quantile(0.99)];
    console.log(
      `\nbroker: from a produce to a consume that waits — ${requests} records, one after the other`,
    );
    console.log(`p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`);
    printGoal(`p50 under ${P50_MS} ms`, p50 < P50_MS, `${p50.toFixed(1)} ms`);
    return noneWrong(wrong);
  });
}
