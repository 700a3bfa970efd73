import { groupBy } from '../../../lib/group-by.js';
import { partitionKey, type TopicPartition } from '../kafka/partitions.js';
import type { Coordinators } from './coordinators.js';

export interface TopicPartitionOffset extends TopicPartition {
  /** The next offset to read; -1 where nothing was committed. */
  readonly offset: number;
}

/** What a client commits. */
export interface CommitRequest {
  /** None: what was last delivered. */
  readonly positions: readonly TopicPartitionOffset[];
  /** Delivery that the client has read. */
  readonly acknowledged?: string | undefined;
}

/** Who commits: a member of the group in its generation. */
export interface Membership {
  readonly group: string;
  readonly generation: number;
  readonly member: string;
}

const ASK_MS = 3_000;

interface Reply {
  readonly errorCode?: number;
  readonly responses: readonly {
    readonly topic: string;
    readonly partitions: readonly {
      readonly partition: number;
      readonly offset: string;
      readonly errorCode: number;
    }[];
  }[];
}

/** Offsets that a group has committed, in the order of `wanted`, whoever its members are. @throws HttpError */
export async function committedOffsets(
  coordinators: Coordinators,
  group: string,
  wanted: readonly TopicPartition[],
): Promise<TopicPartitionOffset[]> {
  if (wanted.length === 0) return [];
  const topics = [...groupBy(wanted, ({ topic }) => topic)].map(([topic, partitions]) => ({
    topic,
    partitions: partitions.map(({ partition }) => ({ partition })),
  }));
  const args = { groupId: group, topics };
  const reply = await coordinators.request<Reply>(group, 'OffsetFetch', args, ASK_MS, firstError);
  const offsets = new Map<string, number>();
  for (const { topic, partitions } of reply.responses)
    for (const { partition, offset } of partitions)
      offsets.set(partitionKey({ topic, partition }), Number(offset));
  return wanted.map(({ topic, partition }) => {
    const offset = offsets.get(partitionKey({ topic, partition })) ?? -1;
    return { topic, partition, offset: Math.max(-1, offset) };
  });
}

/** All offsets that a group has committed. @throws HttpError */
export async function allCommittedOffsets(
  coordinators: Coordinators,
  group: string,
): Promise<TopicPartitionOffset[]> {
  // kafkajs sends an empty list as null, which asks for all
  const args = { groupId: group, topics: [] };
  const { responses } = await coordinators.request<Reply>(group, 'OffsetFetch', args, ASK_MS, firstError);
  return responses.flatMap(({ topic, partitions }) =>
    partitions.map(({ partition, offset }) => ({ topic, partition, offset: Number(offset) })),
  );
}

/**
 * Commits exactly `positions`. Kafka takes each partition by itself; while the group rebalances it takes none (503).
 * @throws HttpError for the first partition that was not taken, such as one that was deleted
 */
export async function commitOffsets(
  coordinators: Coordinators,
  { group, generation, member }: Membership,
  positions: readonly TopicPartitionOffset[],
): Promise<void> {
  const topics = [...groupBy(positions, ({ topic }) => topic)].map(([topic, partitions]) => ({
    topic,
    partitions: partitions.map(({ partition, offset }) => ({ partition, offset: String(offset) })),
  }));
  const args = { groupId: group, groupGenerationId: generation, memberId: member, topics };
  await coordinators.request<Reply>(group, 'OffsetCommit', args, ASK_MS, firstError);
}

function firstError({ errorCode = 0, responses }: Reply): number {
  if (errorCode !== 0) return errorCode;
  for (const { partitions } of responses) {
    for (const { errorCode: code } of partitions) if (code !== 0) return code;
  }
  return 0;
}
