import { HttpError } from '../../../http/errors.js';
import { groupBy } from '../../../lib/group-by.js';
import { kafkaType } from '../errors.js';
import type { Cluster } from '../kafka/cluster.js';
import { existingPartitions, partitionKey, type TopicPartition } from '../kafka/partitions.js';
import { offsetsAt, type PointInLog } from '../read/topic-offsets.js';
import type { Coordinators } from './coordinators.js';
import { allCommittedOffsets, commitOffsets, type TopicPartitionOffset } from './group-offsets.js';

interface Kafka {
  readonly cluster: Cluster;
  readonly coordinators: Coordinators;
}

export interface PartitionLag extends TopicPartitionOffset {
  /** Of the log, for readers of committed records. */
  readonly end: number;
  readonly lag: number;
}

/** Where a group is to go on in one partition, or in all of a topic. */
export interface Seek {
  readonly topic: string;
  readonly partition?: number | undefined;
  readonly offset?: number | 'earliest' | 'latest' | undefined;
  /** ms since 1970; instead of an offset. */
  readonly timestamp?: number | undefined;
}

/** One partition of them, at an offset or at what a point of its log has. */
interface Chosen extends TopicPartition {
  readonly offset?: number;
  readonly point?: PointInLog;
}

/** Who is no member, as Kafka takes it of a group that has none. */
const NOBODY = { generation: -1, member: '' };
const HAS_MEMBERS = new Set(['UNKNOWN_MEMBER_ID', 'ILLEGAL_GENERATION', 'REBALANCE_IN_PROGRESS']);

/** Of the partitions that the group has committed, as far as they are there; by topic and partition. */
export async function groupLag(
  { cluster, coordinators }: Kafka,
  group: string,
  isWanted: (topic: string) => boolean,
): Promise<PartitionLag[]> {
  const all = await allCommittedOffsets(coordinators, group);
  const wanted = all.filter(({ topic, offset }) => offset >= 0 && isWanted(topic));
  const topics = await cluster.topics([...new Set(wanted.map(({ topic }) => topic))]);
  const there = wanted.filter(
    ({ topic, partition }) => topics.get(topic)?.partitions[partition] !== undefined,
  );
  const ends = await offsetsAt(cluster, there, 'latest');
  return there
    .map((one) => {
      const end = ends.get(partitionKey(one)) ?? one.offset;
      return { ...one, end, lag: Math.max(0, end - one.offset) };
    })
    .sort((a, b) => (a.topic === b.topic ? a.partition - b.partition : a.topic < b.topic ? -1 : 1));
}

/**
 * Commits where a group without members goes on; of what is wrong nothing is committed.
 * @returns what was committed
 * @throws HttpError 404, 400 for an offset outside of the log, 409 while the group has members
 */
export async function seekGroup(
  kafka: Kafka,
  group: string,
  seeks: readonly Seek[],
): Promise<TopicPartitionOffset[]> {
  const positions = await positionsOf(kafka.cluster, seeks);
  await commitOffsets(kafka.coordinators, { group, ...NOBODY }, positions).catch((error: unknown) => {
    if (!HAS_MEMBERS.has(kafkaType(error) ?? '')) throw error;
    throw new HttpError(
      'conflict',
      'The group has instances: delete them (/delete-consumer), or commit by them.',
      { cause: error },
    );
  });
  return positions;
}

/** What comes last holds, where a partition is named twice. */
async function positionsOf(cluster: Cluster, seeks: readonly Seek[]): Promise<TopicPartitionOffset[]> {
  const topics = await cluster.existing([...new Set(seeks.map(({ topic }) => topic))]);
  const named = seeks.flatMap(({ topic, partition }) =>
    partition === undefined ? [] : [{ topic, partition }],
  );
  await existingPartitions(cluster, named);
  const chosen = new Map<string, Chosen>();
  for (const { topic, partition, offset, timestamp } of seeks) {
    const ids = partition === undefined ? topics.get(topic)?.partitions.map(({ id }) => id) : [partition];
    for (const id of ids ?? []) {
      const one = { topic, partition: id };
      chosen.set(
        partitionKey(one),
        typeof offset === 'number' ? { ...one, offset } : { ...one, point: offset ?? (timestamp as number) },
      );
    }
  }
  const all = [...chosen.values()];
  await checkOffsets(cluster, all);
  const byPoint = groupBy(all, ({ point }) => point);
  byPoint.delete(undefined);
  const found = await Promise.all(
    [...byPoint].map(([point, partitions]) => offsetsAt(cluster, partitions, point as PointInLog)),
  );
  const offsets = new Map(found.flatMap((some) => [...some]));
  return all.map((one) => {
    const { topic, partition } = one;
    return { topic, partition, offset: one.offset ?? (offsets.get(partitionKey(one)) as number) };
  });
}

/** A group that goes on outside of the log would be reset by its instance, to an end that nobody chose. @throws HttpError 400 */
async function checkOffsets(cluster: Cluster, all: readonly Chosen[]): Promise<void> {
  const given = all.filter(({ offset }) => offset !== undefined);
  if (given.length === 0) return;
  const [first, end] = await Promise.all([
    offsetsAt(cluster, given, 'earliest'),
    offsetsAt(cluster, given, 'latest'),
  ]);
  for (const one of given) {
    const [from, to] = [first, end].map((found) => found.get(partitionKey(one)) as number) as [
      number,
      number,
    ];
    const { topic, partition, offset = 0 } = one;
    if (offset < from || offset > to)
      throw new HttpError(
        'invalid_request',
        `The offset ${offset} is outside of the log, which has ${from} to ${to} (topic ${topic}, partition ${partition}).`,
      );
  }
}
