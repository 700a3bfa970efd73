import type { Cluster } from './cluster.js';
import { kafkaCodeRefusal, translateError } from './errors.js';

export interface CommittedOffset {
  readonly topic: string;
  readonly partition: number;
  /** The next offset to read; -1 where nothing was committed. */
  readonly offset: number;
}

const ASK_MS = 2_000;

/** Offsets that a group has committed, whoever its members are. @throws HttpError */
export async function committedOffsets(
  cluster: Cluster,
  group: string,
  topics: ReadonlyMap<string, { readonly partitions: readonly { readonly id: number }[] }>,
): Promise<CommittedOffset[]> {
  const found = await cluster.ask<{ errorCode: number; coordinator: { nodeId: number } }>(
    'GroupCoordinator',
    {
      groupId: group,
    },
  );
  if (found.errorCode !== 0) throw kafkaCodeRefusal(found.errorCode, `group ${group}`);
  const wanted = [...topics].map(([topic, { partitions }]) => ({
    topic,
    partitions: partitions.map(({ id }) => ({ partition: id })),
  }));
  const reply = await cluster
    .request<OffsetFetchReply>(
      found.coordinator.nodeId,
      'control',
      'OffsetFetch',
      { groupId: group, topics: wanted },
      ASK_MS,
    )
    .catch((error: unknown) => {
      throw translateError(error);
    });
  return reply.responses.flatMap(({ topic, partitions }) =>
    partitions.map(({ partition, offset, errorCode }) => {
      if (errorCode !== 0) throw kafkaCodeRefusal(errorCode, `group ${group}, topic ${topic}`);
      return { topic, partition, offset: Number(offset) };
    }),
  );
}

interface OffsetFetchReply {
  readonly responses: readonly {
    readonly topic: string;
    readonly partitions: readonly {
      readonly partition: number;
      readonly offset: string;
      readonly errorCode: number;
    }[];
  }[];
}
