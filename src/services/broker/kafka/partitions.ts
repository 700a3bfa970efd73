import { HttpError } from '../../../http/errors.js';
import type { Cluster } from './cluster.js';
import type { Topic } from './topics.js';

export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

export function partitionKey({ topic, partition }: TopicPartition): string {
  return `${partition} ${topic}`;
}

/**
 * The topics of `wanted`, whose partitions all exist.
 * @throws HttpError 404 for a topic, 400 for a partition that does not
 */
export async function existingPartitions(
  cluster: Cluster,
  wanted: readonly TopicPartition[],
): Promise<Map<string, Topic>> {
  const names = [...new Set(wanted.map(({ topic }) => topic))];
  let topics = await cluster.existing(names);
  // partitions may have been added since the topic was last asked for
  if (wanted.some((one) => isBeyond(one, topics))) topics = await cluster.refresh(names);
  const unknown = wanted.find((one) => isBeyond(one, topics));
  if (unknown !== undefined) throw unknownPartition(unknown, topics.get(unknown.topic));
  return topics;
}

/** @param topic `undefined` where it does not exist */
export function unknownPartition({ topic: name, partition }: TopicPartition, topic: Topic | undefined) {
  if (topic === undefined) return new HttpError('not_found', `There is no topic ${name}.`);
  const last = topic.partitions.length - 1;
  return new HttpError('invalid_request', `Topic ${name} has the partitions 0 to ${last}, not ${partition}.`);
}

/** Broker that leads the partition; -1 where there is none at present. */
export function leaderOf({ topic, partition }: TopicPartition, topics: ReadonlyMap<string, Topic>): number {
  return topics.get(topic)?.partitions[partition]?.leader ?? -1;
}

function isBeyond({ topic, partition }: TopicPartition, topics: ReadonlyMap<string, Topic>): boolean {
  return partition >= (topics.get(topic)?.partitions.length ?? 0);
}
