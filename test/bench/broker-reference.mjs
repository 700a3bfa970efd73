// Bare kafkajs in a process of its own: what the gateway is compared with. Runs what its parent asks for and answers.
import kafkajs from 'kafkajs';

const kafka = new kafkajs.Kafka({
  brokers: process.env.PORTICO_KAFKA_BROKERS.split(','),
  logLevel: kafkajs.logLevel.NOTHING,
});
const producer = kafka.producer({ allowAutoTopicCreation: false });

const tasks = {
  /** Records a second of `inFlight` senders that each wait for their own. */
  async produce({ topic, value, recordsPerSend, inFlight, seconds }) {
    const messages = Array.from({ length: recordsPerSend }, () => ({ value }));
    let sends = 0;
    const startedAt = performance.now();
    const sender = async () => {
      while (performance.now() - startedAt < seconds * 1_000) {
        await producer.sendBatch({ acks: -1, topicMessages: [{ topic, messages }] });
        sends += 1;
      }
    };
    await Promise.all(Array.from({ length: inFlight }, sender));
    return (sends * recordsPerSend * 1_000) / (performance.now() - startedAt);
  },

  /** Records a second of a new group that reads a topic of `records` records, once it is under way (the first quarter is not counted). */
  async consume({ topic, records, group }) {
    const consumer = kafka.consumer({ groupId: group });
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    let seen = 0;
    let startedAt = 0;
    let seenBefore = 0;
    const endedAt = await new Promise((resolve, reject) => {
      consumer
        .run({
          partitionsConsumedConcurrently: 4,
          eachBatch: async ({ batch }) => {
            seen += batch.messages.length;
            if (startedAt === 0 && seen >= records / 4) {
              startedAt = performance.now();
              seenBefore = seen;
            }
            if (seen >= records) resolve(performance.now());
          },
        })
        .catch(reject);
    });
    await consumer.disconnect();
    return ((records - seenBefore) * 1_000) / (endedAt - startedAt);
  },

  async fill({ topic, value, records }) {
    const messages = Array.from({ length: 1_000 }, () => ({ value }));
    for (let left = records; left > 0; left -= messages.length)
      await producer.send({ topic, messages, acks: -1 });
    return records;
  },
};

await producer.connect();
process.send('ready');
process.on('message', async ({ task, ...options }) => {
  try {
    process.send({ result: await tasks[task](options) });
  } catch (error) {
    process.send({ error: String(error?.stack ?? error) });
  }
});
process.on('SIGTERM', () => producer.disconnect().finally(() => process.exit(0)));
