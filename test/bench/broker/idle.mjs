import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { printGoal } from '../frame.mjs';
import { ask, closeConnections, startBrokerGateway } from './gateway.mjs';
import { connectedAdmin, removeTopic } from './servers.mjs';

export const backends = ['kafka'];

const IDLE = 200;
const IN_TURN = 2_000;
const AT_ONCE = 8;

/** What consumer instances cost that nobody asks, and what is left of many that came and went. */
export async function run({ seconds = 5 }) {
  const brokers = process.env.PORTICO_KAFKA_BROKERS;
  const prefix = `bench-${randomBytes(4).toString('hex')}`;
  const admin = await connectedAdmin(brokers);
  await admin.createTopics({
    waitForLeaders: true,
    topics: [{ topic: prefix, numPartitions: IDLE + AT_ONCE }],
  });
  const folder = await mkdtemp(join(tmpdir(), 'portico-bench-'));
  const password = randomBytes(24).toString('base64url');
  const gateway = await startBrokerGateway(folder, brokers, password);
  const authorization = `Basic ${Buffer.from(`portico:${password}`).toString('base64')}`;
  const call = async (path, method) => {
    const { status, text } = await ask(gateway.port, `/broker${path}`, { authorization }, method);
    if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
  };
  const consume = (i) => call(`/consume/${prefix}-${i % (IDLE + AT_ONCE)}/i${i}/${prefix}?timeout=5`, 'GET');
  const state = () => ({
    rss: gateway.rssMegabytes(),
    sockets: readdirSync(`/proc/${gateway.pid}/fd`).length,
  });
  try {
    await inTurns(IDLE, consume);
    await pause(5_000);
    const before = gateway.cpuSeconds();
    await pause(seconds * 2_000);
    const share = (gateway.cpuSeconds() - before) / (seconds * 2);
    const idle = state();
    console.log(
      `\n${IDLE} idle instances: ${idle.rss.toFixed(0)} MB RSS, ${(share * 100).toFixed(1)} % of a core, ${idle.sockets} files`,
    );
    printGoal('under 400 MB', idle.rss < 400, `${idle.rss.toFixed(0)} MB`);
    printGoal('under 5 % of a core', share < 0.05, `${(share * 100).toFixed(1)} %`);
    await inTurns(IDLE, (i) => call(`/delete-consumer/${prefix}-${i}/i${i}`, 'POST'));
    const comeAndGo = async (i) => {
      await consume(i);
      await call(`/delete-consumer/${prefix}-${i % (IDLE + AT_ONCE)}/i${i}`, 'POST');
    };
    const states = [];
    for (let part = 0; part < 4; part++) {
      await inTurns(IN_TURN / 4, comeAndGo);
      await pause(500);
      states.push(state());
    }
    const shown = states.map(({ rss, sockets }) => `${rss.toFixed(0)} MB, ${sockets} files`).join('; ');
    console.log(`${IN_TURN} instances made and deleted, after each quarter: ${shown}`);
    return true;
  } finally {
    closeConnections();
    await gateway.stop();
    await removeTopic(admin, prefix);
    await rm(folder, { recursive: true, force: true });
  }
}

async function inTurns(count, work) {
  let next = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < count) await work(next++);
    }),
  );
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
