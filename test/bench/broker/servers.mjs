import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import kafkajs from 'kafkajs';
import { cpuSeconds, endWithThisProcess, rssMegabytes } from '../server-process.mjs';
import { closeConnections, startBrokerGateway } from './gateway.mjs';

/** As many as the consumer of the reference reads at once. */
const PARTITIONS = 4;

/**
 * Runs `work` with the gateway, bare kafkajs in a process of its own and a topic of 4 partitions, then ends both and
 * removes the topic and every group whose name came from `group`.
 * @template T
 * @param {(bench: Awaited<ReturnType<typeof openBench>>) => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withBrokerServers(work) {
  const bench = await openBench();
  try {
    return await work(bench);
  } finally {
    await bench.close();
  }
}

async function openBench() {
  const brokers = process.env.PORTICO_KAFKA_BROKERS;
  const topic = `bench-${randomBytes(4).toString('hex')}`;
  const password = randomBytes(24).toString('base64url');
  const folder = await mkdtemp(join(tmpdir(), 'portico-bench-'));
  const admin = await connectedAdmin(brokers);
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: PARTITIONS }] });
  const reference = await startReference(brokers);
  const gateway = await startBrokerGateway(folder, brokers, password);
  const authorization = `Basic ${Buffer.from(`portico:${password}`).toString('base64')}`;
  let groups = 0;
  return {
    topic,
    reference,
    gateway,
    authorization,
    group: () => `${topic}-${groups++}`,
    /** A request's bytes. @param {{ body?: unknown, headers?: string[] }} [more] */
    request: (method, path, { body, headers = [] } = {}) => {
      const text = body === undefined ? '' : JSON.stringify(body);
      const lines = [
        `${method} /broker${path} HTTP/1.1`,
        'Host: 127.0.0.1',
        `Authorization: ${authorization}`,
      ];
      if (body !== undefined)
        lines.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`);
      return Buffer.from(`${[...lines, ...headers].join('\r\n')}\r\n\r\n${text}`);
    },
    close: async () => {
      closeConnections();
      await Promise.all([reference.stop(), gateway.stop()]);
      await removeTopic(admin, topic);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** @param {string} brokers */
export async function connectedAdmin(brokers) {
  const admin = new kafkajs.Kafka({
    brokers: brokers.split(','),
    logLevel: kafkajs.logLevel.NOTHING,
  }).admin();
  await admin.connect();
  return admin;
}

/** With the groups that are called after it; disconnects. */
export async function removeTopic(admin, topic) {
  await admin.deleteTopics({ topics: [topic] });
  const { groups } = await admin.listGroups();
  const mine = groups.map(({ groupId }) => groupId).filter((id) => id.startsWith(topic));
  await admin.deleteGroups(mine).catch(() => {});
  await admin.disconnect();
}

async function startReference(brokers) {
  const child = fork('test/bench/broker/reference.mjs', {
    env: { PATH: process.env.PATH, PORTICO_KAFKA_BROKERS: brokers },
  });
  endWithThisProcess(child);
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const answer = () =>
    new Promise((resolve, reject) => {
      const onExit = (code) => reject(new Error(`the reference ended with ${code}`));
      child.once('exit', onExit);
      child.once('message', ({ result, error }) => {
        child.off('exit', onExit);
        if (error === undefined) resolve(result);
        else reject(new Error(error));
      });
    });
  await answer();
  return {
    /** Has it do one of its tasks. */
    run: (message) => {
      child.send(message);
      return answer();
    },
    cpuSeconds: () => cpuSeconds(child.pid),
    rssMegabytes: () => rssMegabytes(child.pid),
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
    },
  };
}
