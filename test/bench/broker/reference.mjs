// Bare kafkajs in a process of its own: what the gateway is compared with. Runs what its parent asks for and answers.
import kafkajs from 'kafkajs';

const kafka = new kafkajs.Kafka({
  brokers: process.env.PORTICO_KAFKA_BROKERS.split(','),
  logLevel: kafkajs.logLevel.NOTHING,
});
const producer = kafka.producer({ allowAutoTopicCreation: false });

const tasks = {
  /** `inFlight` senders that each wait for their own; how long each send took, in microseconds, and all in seconds. */
  async produce({ topic, value, recordsPerSend, inFlight, seconds }) {
    const messages = Array.from({ length: recordsPerSend }, () => ({ value }));
    const microseconds = [];
    const startedAt = performance.now();
    const sender = async () => {
      while (performance.now() - startedAt < seconds * 1_000) {
        const sentAt = performance.now();
        await producer.sendBatch({ acks: -1, topicMessages: [{ topic, messages }] });
        microseconds.push(Math.round((performance.now() - sentAt) * 1_000));
      }
    };
    await Promise.all(Array.from({ length: inFlight }, sender));
    return { microseconds, seconds: (performance.now() - startedAt) / 1_000 };
  },

  /** A new group reads a topic: how many records it read and how long that took, once it is under way (`from` records are not counted). */
  async consume({ topic, records, from, group }) {
    const consumer = kafka.consumer({ groupId: group });
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    let seen = 0;
    let start;
    const result = await new Promise((resolve, reject) => {
      consumer
        .run({
          partitionsConsumedConcurrently: 4,
          eachBatch: async ({ batch }) => {
            seen += batch.messages.length;
            if (start === undefined && seen >= from)
              start = { seen, at: performance.now(), cpu: process.cpuUsage() };
            if (seen < records) return;
            const { user, system } = process.cpuUsage(start.cpu);
            resolve({
              records: seen - start.seen,
              seconds: (performance.now() - start.at) / 1_000,
              cpuSeconds: (user + system) / 1e6,
            });
          },
        })
        .catch(reject);
    });
    await consumer.disconnect();
    return result;
  },

  async fill({ topic, value, records }) {
    const messages = Array.from({ length: 1_000 }, () => ({ value }));
    for (let left = records; left > 0; left -= messages.length)
      await producer.send({ topic, messages, acks: -1 });
    return records;
  },
};

await producer.connect();
process.send({ result: 'ready' });
process.on('message', async ({ task, ...options }) => {
  try {
    process.send({ result: await tasks[task](options) });
  } catch (error) {
    process.send({ error: String(error?.stack ?? error) });
  }
});
process.on('SIGTERM', () => producer.disconnect().finally(() => process.exit(0)));
