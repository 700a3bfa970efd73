// Bare kafkajs in a process of its own beside the gateway, while a broker dies: tells of each record that is acknowledged or read.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';

const { brokers, ca, username, password, produceTo, consumeFrom, partitions, everyMs, group } = JSON.parse(
  process.env.FAILOVER,
);
const kafka = new kafkajs.Kafka({
  brokers,
  ssl: { ca: [readFileSync(ca, 'utf8')] },
  sasl: { mechanism: 'plain', username, password },
  logLevel: kafkajs.logLevel.NOTHING,
});
const producer = kafka.producer({ allowAutoTopicCreation: false });
const consumer = kafka.consumer({ groupId: group });
await Promise.all([producer.connect(), consumer.connect()]);
await consumer.subscribe({ topics: [consumeFrom] });
await consumer.run({
  partitionsConsumedConcurrently: partitions,
  eachMessage: async ({ partition, message }) =>
    process.send({ read: [partition, Number(message.offset), Date.now()] }),
});

const write = async (partition) => {
  for (;;) {
    try {
      const [{ baseOffset }] = await producer.send({
        topic: produceTo,
        acks: -1,
        messages: [{ partition, value: 'v' }],
      });
      process.send({ written: [partition, Number(baseOffset), Date.now()] });
    } catch {
      // it asks again, as a client of the gateway does
    }
    await sleep(everyMs);
  }
};
for (let partition = 0; partition < partitions; partition++) void write(partition);
