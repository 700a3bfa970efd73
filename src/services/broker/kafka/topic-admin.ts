import type { Admin } from 'kafkajs';
import type { z } from 'zod';
import { HttpError } from '../../../http/errors.js';
import { Mutex } from '../../../lib/mutex.js';
import { kafkaRefusal, translateError } from '../errors.js';
import type { topicReply } from '../schemas.js';
import { type ClientOptions, TOPIC_RESOURCE, withAdmin } from './client.js';
import type { Cluster } from './cluster.js';

/** What a topic is to be; what is absent is the brokers' default. */
export interface TopicWishes {
  readonly partitions?: number | undefined;
  readonly replicationFactor?: number | undefined;
  readonly config?: Readonly<Record<string, string>> | undefined;
}

/** The same of a topic that is there; `null` is the brokers' default. */
export interface TopicChanges {
  readonly partitions?: number | undefined;
  readonly config?: Readonly<Record<string, string | null>> | undefined;
}

export type TopicDescription = z.input<typeof topicReply>;

/** Kafka's code of a value that was set for the topic itself (DescribeConfigs, `config_source`). */
const SET_FOR_TOPIC = 1;

/** Makes, describes, changes and deletes topics, one call at a time: each has a connection of its own. */
export class TopicAdmin {
  private readonly mutex = new Mutex();

  constructor(
    private readonly cluster: Cluster,
    private readonly client: ClientOptions,
  ) {}

  /** @throws HttpError 404 */
  async describe(topic: string, signal: AbortSignal): Promise<TopicDescription> {
    await this.mustExist(topic);
    return this.inTurn(signal, async (admin) => {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
      const partitions = (topics[0]?.partitions ?? [])
        .map(({ partitionId: partition, leader, replicas, isr: inSync }) => ({
          partition,
          leader,
          replicas,
          inSync,
        }))
        .sort((a, b) => a.partition - b.partition);
      return { name: topic, partitions, config: await configOf(admin, topic) };
    });
  }

  /** Resolves when its partitions have leaders. @throws HttpError 409 when it is there, 400 for what Kafka does not take */
  async create(
    topic: string,
    { partitions, replicationFactor, config = {} }: TopicWishes,
    signal: AbortSignal,
  ): Promise<void> {
    // kafkajs tries for long before it says that Kafka is away
    await this.cluster.check();
    const wanted = {
      topic,
      numPartitions: partitions ?? -1,
      replicationFactor: replicationFactor ?? -1,
      configEntries: Object.entries(config).map(([name, value]) => ({ name, value })),
    };
    const isMade = await this.inTurn(signal, (admin) => admin.createTopics({ topics: [wanted] }));
    await this.cluster.refresh([topic]);
    if (!isMade) throw kafkaRefusal('TOPIC_ALREADY_EXISTS', `topic ${topic}`);
  }

  /**
   * All of it or nothing, as far as Kafka can tell beforehand; as many partitions as there are already are no change.
   * @throws HttpError 404; 400 for fewer partitions and for what Kafka does not take
   */
  async change(topic: string, { partitions, config }: TopicChanges, signal: AbortSignal): Promise<void> {
    const there = await this.mustExist(topic);
    await this.inTurn(signal, async (admin) => {
      const alter = config === undefined ? undefined : await configChange(admin, topic, config);
      if (partitions !== undefined && partitions !== there.get(topic)?.partitions.length) {
        await alter?.(true);
        await admin.createPartitions({ topicPartitions: [{ topic, count: partitions }] });
      }
      await alter?.(false);
    });
    await this.cluster.refresh([topic]);
  }

  /** With its records. @throws HttpError 404 */
  async delete(topic: string, signal: AbortSignal): Promise<void> {
    await this.mustExist(topic);
    await this.inTurn(signal, (admin) => admin.deleteTopics({ topics: [topic] }));
    await this.cluster.refresh([topic]);
  }

  private async mustExist(topic: string): ReturnType<Cluster['existing']> {
    await this.cluster.refresh([topic]);
    return this.cluster.existing([topic]);
  }

  private async inTurn<T>(signal: AbortSignal, work: (admin: Admin) => Promise<T>): Promise<T> {
    const release = await this.mutex.acquire(signal);
    if (release === undefined) throw new HttpError('timeout');
    try {
      return await withAdmin(this.client, work);
    } catch (error) {
      throw translateError(firstOf(error));
    } finally {
      release();
    }
  }
}

/** What asks Kafka for a change, or only whether it would be taken. */
async function configChange(
  admin: Admin,
  topic: string,
  config: NonNullable<TopicChanges['config']>,
): Promise<(validateOnly: boolean) => Promise<unknown>> {
  // kafkajs knows the call alone by which what is left out is reset
  const merged: Record<string, string | null> = { ...(await configOf(admin, topic)), ...config };
  const configEntries = Object.entries(merged).flatMap(([name, value]) =>
    value === null ? [] : [{ name, value }],
  );
  const resources = [{ type: TOPIC_RESOURCE, name: topic, configEntries }];
  return (validateOnly) => admin.alterConfigs({ validateOnly, resources });
}

/** What was set for a topic, without what are secrets. */
async function configOf(admin: Admin, topic: string): Promise<Record<string, string>> {
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: TOPIC_RESOURCE, name: topic }],
  });
  const entries = resources[0]?.configEntries ?? [];
  const own = entries.filter((entry) => Number(entry.configSource) === SET_FOR_TOPIC);
  return Object.fromEntries(own.map(({ configName, configValue }) => [configName, configValue]));
}

/** kafkajs puts the refusals of several topics into one error. */
function firstOf(error: unknown): unknown {
  const { errors } = error as { errors?: readonly unknown[] };
  return errors?.[0] ?? error;
}
