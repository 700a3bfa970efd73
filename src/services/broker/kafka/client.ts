import kafkajs, { type LogEntry } from 'kafkajs';
import type { Logger } from '../../../lib/logger.js';
import type { DeclaredTopic } from './declared-topics.js';
import { calmIdleConnections } from './kafkajs-internals.js';
import { type KafkaSecurity, saslOf } from './sasl.js';

calmIdleConnections();

/** What a configuration is of, in kafkajs' words. */
export const TOPIC_RESOURCE = kafkajs.ConfigResourceTypes.TOPIC;

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

export interface ClientOptions {
  readonly brokers: readonly string[];
  readonly security: KafkaSecurity;
  readonly connectTimeoutMs: number;
  readonly log: Logger;
}

/**
 * Makes topics with the brokers' default replication and waits until they have leaders; existing ones are left alone.
 * @throws kafkajs' errors
 */
export async function createTopics(options: ClientOptions, topics: readonly DeclaredTopic[]): Promise<void> {
  await withAdmin(options, (admin) =>
    admin.createTopics({
      waitForLeaders: true,
      topics: topics.map(({ name, partitions }) => ({ topic: name, numPartitions: partitions })),
    }),
  );
}

/**
 * Deletes the records of every topic, whose offsets go on counting, and every group that has no member.
 * @throws kafkajs' errors
 */
export async function emptyCluster(options: ClientOptions): Promise<void> {
  await withAdmin(options, async (admin) => {
    const topics = (await admin.listTopics()).filter((name) => !name.startsWith('__'));
    for (const topic of topics) {
      const partitions = (await admin.fetchTopicOffsets(topic)).filter(({ low, high }) => low !== high);
      const ends = partitions.map(({ partition, high }) => ({ partition, offset: high }));
      if (ends.length > 0) await admin.deleteTopicRecords({ topic, partitions: ends });
    }
    const { groups } = await admin.listGroups();
    if (groups.length > 0) await admin.deleteGroups(groups.map(({ groupId }) => groupId));
  });
}

/** A connection of kafkajs' own for the time of `work`. @throws kafkajs' errors */
export async function withAdmin<T>(
  { brokers, security, connectTimeoutMs, log }: ClientOptions,
  work: (admin: kafkajs.Admin) => Promise<T>,
): Promise<T> {
  const { tls } = security;
  const sasl = await saslOf(security);
  const kafka = new kafkajs.Kafka({
    brokers: [...brokers],
    clientId: 'portico',
    ...(tls === undefined ? {} : { ssl: tls }),
    ...(sasl === null ? {} : { sasl: sasl as kafkajs.SASLOptions }),
    connectionTimeout: connectTimeoutMs,
    requestTimeout: 10_000,
    logLevel: kafkajs.logLevel.WARN,
    logCreator: kafkaLogCreator(log),
    retry: { retries: 2, initialRetryTime: 100, maxRetryTime: 500 },
  });
  const admin = kafka.admin();
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}

type Partitions = readonly { readonly id: number; readonly leader: number }[];

/** Which partition a record goes to when its producer does not say: by key as the Java client does, else in turns. */
export function createPartitioner(): (
  topic: string,
  key: string | Buffer | undefined,
  partitions: Partitions,
) => number {
  const byKey = kafkajs.Partitioners.DefaultPartitioner();
  const turns = new Map<string, number>();
  return (topic, key, partitions) => {
    if (key !== undefined)
      return byKey({ topic, partitionMetadata: metadataOf(partitions), message: { value: null, key } });
    // kafkajs would do this too, with a new list of the partitions for each record
    const first = turns.get(topic) ?? Math.floor(Math.random() * partitions.length);
    for (let i = 0; i < partitions.length; i++) {
      const partition = partitions[(first + i) % partitions.length];
      if (partition === undefined || partition.leader < 0) continue;
      turns.set(topic, (first + i + 1) % partitions.length);
      return partition.id;
    }
    return first % partitions.length;
  };
}

const METADATA = new WeakMap<Partitions, kafkajs.PartitionMetadata[]>();

function metadataOf(partitions: Partitions): kafkajs.PartitionMetadata[] {
  let metadata = METADATA.get(partitions);
  if (metadata === undefined) {
    metadata = partitions.map(({ id, leader }) => ({ ...NO_METADATA, partitionId: id, leader }));
    METADATA.set(partitions, metadata);
  }
  return metadata;
}

const NO_METADATA = { partitionErrorCode: 0, replicas: [], isr: [], offlineReplicas: [] };
