import { randomBytes } from 'node:crypto';
import kafkajs from 'kafkajs';
import { backendAddress } from '../environment.js';
import { eventually } from '../eventually.js';
import { TOKENS } from '../tokens.js';

/** Topics and groups of one test file, under a prefix of its own. */
export interface KafkaNamespace {
  /** Name of a topic or group of this file. */
  name(short: string): string;
  /** Makes a topic; resolves when it has its leaders. */
  topic(short: string, partitions?: number, config?: Record<string, string>): Promise<string>;
  /** The same without the file's prefix. */
  exactTopic(topic: string): Promise<void>;
  deleteTopic(topic: string): Promise<void>;
  /** Offsets that a group has committed, by partition; -1 for none. */
  committed(group: string, topic: string): Promise<number[]>;
  members(group: string): Promise<number>;
  /** The same where each has its partitions; 0 before: what is consumed while they change hands may come again. */
  settledMembers(group: string): Promise<number>;
  addPartitions(topic: string, count: number): Promise<void>;
  /** Deletes the records of partition 0 before `offset`. */
  truncate(topic: string, offset: number): Promise<void>;
  /** A consumer of another kind joins the group; resolves to what makes it leave. */
  otherMember(group: string, topic: string): Promise<() => Promise<void>>;
  /** Writes records to partition 0 in a transaction, and ends that. */
  transaction(topic: string, values: readonly string[], end: 'commit' | 'abort'): Promise<void>;
  /** The values of a topic's records as bytes, read by a consumer of its own; as soon as there is one. */
  rawValues(topic: string): Promise<(Buffer | null)[]>;
  /** Removes all of it. */
  dispose(): Promise<void>;
}

export async function kafkaNamespace(): Promise<KafkaNamespace> {
  const prefix = `test-${randomBytes(4).toString('hex')}.`;
  const kafka = new kafkajs.Kafka({
    brokers: [backendAddress('PORTICO_KAFKA_BROKERS')],
    logLevel: kafkajs.logLevel.NOTHING,
  });
  const admin = kafka.admin();
  await admin.connect();
  const others: string[] = [];
  // kafkajs' own wait for leaders throws while the broker does not know the topic yet
  const create = async (topic: kafkajs.ITopicConfig) => {
    await admin.createTopics({ topics: [topic], waitForLeaders: false });
    await eventually(async () => {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic.topic] });
      const partitions = topics[0]?.partitions ?? [];
      expect(partitions).toHaveLength(topic.numPartitions ?? 1);
      for (const { leader } of partitions) expect(leader).toBeGreaterThanOrEqual(0);
    });
  };
  return {
    name: (short) => prefix + short,
    topic: async (short, numPartitions = 1, config = {}) => {
      const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }));
      await create({ topic: prefix + short, numPartitions, configEntries });
      return prefix + short;
    },
    exactTopic: async (topic) => {
      await create({ topic });
      others.push(topic);
    },
    deleteTopic: (topic) => admin.deleteTopics({ topics: [topic] }),
    committed: async (groupId, topic) => {
      const [found] = await admin.fetchOffsets({ groupId, topics: [topic] });
      const partitions = found?.partitions ?? [];
      return [...partitions].sort((a, b) => a.partition - b.partition).map(({ offset }) => Number(offset));
    },
    members: async (group) => (await admin.describeGroups([group])).groups[0]?.members.length ?? 0,
    settledMembers: async (group) => {
      const [found] = (await admin.describeGroups([group])).groups;
      return found?.state === 'Stable' ? found.members.length : 0;
    },
    addPartitions: async (topic, count) => {
      await admin.createPartitions({ topicPartitions: [{ topic, count }] });
    },
    truncate: async (topic, offset) => {
      // kafkajs looks for the partition's leader before it has asked about the topic
      await admin.fetchTopicOffsets(topic);
      await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: String(offset) }] });
    },
    otherMember: async (groupId, topic) => {
      const consumer = kafka.consumer({ groupId });
      await consumer.connect();
      await consumer.subscribe({ topics: [topic] });
      const joined = new Promise((resolve) => consumer.on(consumer.events.GROUP_JOIN, resolve));
      await consumer.run({ eachMessage: async () => {} });
      await joined;
      return () => consumer.disconnect();
    },
    transaction: async (topic, values, end) => {
      const producer = kafka.producer({
        transactionalId: `${prefix}${randomBytes(4).toString('hex')}`,
        idempotent: true,
        maxInFlightRequests: 1,
      });
      await producer.connect();
      const transaction = await producer.transaction();
      await transaction.send({ topic, messages: values.map((value) => ({ value, partition: 0 })) });
      await transaction[end]();
      await producer.disconnect();
    },
    rawValues: async (topic) => {
      const consumer = kafka.consumer({ groupId: `${prefix}raw-${randomBytes(4).toString('hex')}` });
      await consumer.connect();
      await consumer.subscribe({ topics: [topic], fromBeginning: true });
      const values = await new Promise<(Buffer | null)[]>((resolve, reject) => {
        consumer
          .run({ eachBatch: async ({ batch }) => resolve(batch.messages.map(({ value }) => value)) })
          .catch(reject);
      });
      await consumer.disconnect();
      return values;
    },
    dispose: async () => {
      const topics = (await admin.listTopics()).filter(
        (topic) => topic.startsWith(prefix) || others.includes(topic),
      );
      if (topics.length > 0) await admin.deleteTopics({ topics });
      const { groups } = await admin.listGroups();
      const mine = groups.map(({ groupId }) => groupId).filter((groupId) => groupId.includes(prefix));
      if (mine.length > 0) await admin.deleteGroups(mine).catch(() => {});
      await admin.disconnect();
    },
  };
}

export interface Answer<Body> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
  readonly ms: number;
}

export interface BrokerRecord {
  topic: string;
  partition: number;
  offset: number;
  timestamp: number;
  key: string;
  value: string;
  headers: { key: string; value: string }[];
}

/** Calls the broker service with the credentials of the tests, or others. */
export function brokerClient(
  url: string,
  { username, password }: { username: string; password: string } = TOKENS,
) {
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  return async <Body = BrokerRecord[]>(
    path: string,
    body?: unknown,
    {
      method,
      headers,
      signal,
    }: { method?: string; headers?: Record<string, string>; signal?: AbortSignal } = {},
  ): Promise<Answer<Body>> => {
    const started = performance.now();
    const reply = await fetch(`${url}/broker${path}`, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: { authorization, ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    const answer = (await reply.json()) as Body;
    return { status: reply.status, headers: reply.headers, body: answer, ms: performance.now() - started };
  };
}

export type BrokerClient = ReturnType<typeof brokerClient>;
