import kafkajs, { type LogEntry } from 'kafkajs';
import type { Logger } from '../../lib/logger.js';
import type { DeclaredTopic } from './declared-topics.js';
import { calmIdleConnections } from './kafkajs-internals.js';

calmIdleConnections();

/** Encodes and decodes what the members of a consumer group tell each other. */
export const { MemberMetadata, MemberAssignment } = kafkajs.AssignerProtocol;

/**
 * kafkajs reports every failed attempt at full severity, once a connection and try; the service logs what comes of
 * them. So its lines are for `debug`.
 */
export function kafkaLogCreator(log: Logger) {
  return () =>
    ({ namespace, label, log: { message } }: LogEntry) => {
      log.debug({ kafkajs: namespace, severity: label }, message);
    };
}

/**
 * Makes topics with the brokers' default replication and waits until they have leaders; existing ones are left alone.
 * @throws kafkajs' errors
 */
export async function createTopics(
  brokers: readonly string[],
  topics: readonly DeclaredTopic[],
  log: Logger,
): Promise<void> {
  const kafka = new kafkajs.Kafka({
    brokers: [...brokers],
    clientId: 'portico',
    connectionTimeout: 1_000,
    requestTimeout: 10_000,
    logLevel: kafkajs.logLevel.WARN,
    logCreator: kafkaLogCreator(log),
    retry: { retries: 2, initialRetryTime: 100, maxRetryTime: 500 },
  });
  const admin = kafka.admin();
  await admin.connect();
  try {
    await admin.createTopics({
      waitForLeaders: true,
      topics: topics.map(({ name, partitions }) => ({ topic: name, numPartitions: partitions })),
    });
  } finally {
    await admin.disconnect();
  }
}

/** Which partition a record goes to when its producer does not say: by key as the Java client does, else in turns. */
export function createPartitioner(): (
  topic: string,
  key: string | undefined,
  partitions: readonly { id: number; leader: number }[],
) => number {
  const partitioner = kafkajs.Partitioners.DefaultPartitioner();
  return (topic, key, partitions) =>
    partitioner({
      // kafkajs counts turns in a plain object: the colon keeps a topic called `constructor` from being found there
      topic: `:${topic}`,
      partitionMetadata: partitions.map(({ id, leader }) => ({ ...NO_METADATA, partitionId: id, leader })),
      message: { value: null, ...(key === undefined ? {} : { key }) },
    });
}

const NO_METADATA = { partitionErrorCode: 0, replicas: [], isr: [], offlineReplicas: [] };
