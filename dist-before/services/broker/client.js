import kafkajs, {} from 'kafkajs';
import { calmIdleConnections } from './kafkajs-internals.js';
calmIdleConnections();
/** Encodes and decodes what the members of a consumer group tell each other. */
export const { MemberMetadata, MemberAssignment } = kafkajs.AssignerProtocol;
/**
 * kafkajs reports every failed attempt at full severity, once a connection and try; the service logs what comes of
 * them. So its lines are for `debug`.
 */
export function kafkaLogCreator(log) {
    return () => ({ namespace, label, log: { message } }) => {
        log.debug({ kafkajs: namespace, severity: label }, message);
    };
}
/** Kafka answers at once when there is data; this bounds how long an idle fetch, and with it a stop, lasts. In ms. */
const IDLE_FETCH_MS = 300;
/**
 * A consumer on a `Kafka` object of its own: kafkajs keeps committed offsets by object and group, and two consumers
 * of one group on the same object wipe each other's.
 */
export function createConsumer(options) {
    const kafka = new kafkajs.Kafka({
        brokers: [...options.brokers],
        clientId: options.clientId,
        connectionTimeout: 1_000,
        requestTimeout: 10_000,
        logLevel: kafkajs.logLevel.WARN,
        logCreator: kafkaLogCreator(options.log),
        retry: {
            retries: 4,
            initialRetryTime: 100,
            maxRetryTime: 1_000,
            // the next request makes a new consumer; one that restarted by itself could not be told from a dead one
            restartOnFailure: async () => false,
        },
    });
    return kafka.consumer({
        groupId: options.groupId,
        partitionAssigners: [options.assigner],
        sessionTimeout: options.sessionTimeoutMs,
        heartbeatInterval: Math.min(1_000, Math.floor(options.sessionTimeoutMs / 5)),
        rebalanceTimeout: 30_000,
        maxWaitTimeInMs: IDLE_FETCH_MS,
        maxBytes: options.fetchBytes,
        maxBytesPerPartition: options.fetchBytes,
        allowAutoTopicCreation: false,
        retry: { retries: 4 },
    });
}
/**
 * Makes topics with the brokers' default replication and waits until they have leaders; existing ones are left alone.
 * @throws kafkajs' errors
 */
export async function createTopics(brokers, topics, log) {
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
    }
    finally {
        await admin.disconnect();
    }
}
/** Which partition a record goes to when its producer does not say: by key as the Java client does, else in turns. */
export function createPartitioner() {
    const partitioner = kafkajs.Partitioners.DefaultPartitioner();
    return (topic, key, partitions) => partitioner({
        // kafkajs counts turns in a plain object: the colon keeps a topic called `constructor` from being found there
        topic: `:${topic}`,
        partitionMetadata: partitions.map(({ id, leader }) => ({ ...NO_METADATA, partitionId: id, leader })),
        message: { value: null, ...(key === undefined ? {} : { key }) },
    });
}
const NO_METADATA = { partitionErrorCode: 0, replicas: [], isr: [], offlineReplicas: [] };
//# sourceMappingURL=client.js.map