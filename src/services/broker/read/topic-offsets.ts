import { groupBy } from '../../../lib/group-by.js';
import { kafkaCodeRefusal, kafkaRefusal, STALE_LEADER, translateError } from '../errors.js';
import type { Cluster } from '../kafka/cluster.js';
import { errorType } from '../kafka/kafkajs-internals.js';
import { leaderOf, partitionKey, type TopicPartition } from '../kafka/partitions.js';
import { LEADER_PAUSE_MS, pause } from '../kafka/waits.js';

/** Milliseconds since 1970, or one end of the log. */
export type PointInLog = number | 'earliest' | 'latest';

interface OffsetsReply {
  readonly responses: readonly {
    readonly topic: string;
    readonly partitions: readonly {
      readonly partition: number;
      readonly errorCode: number;
      readonly offset: string;
    }[];
  }[];
}

/** Kafka's codes for the ends in the place of a time. */
const ENDS = { latest: -1, earliest: -2 } as const;
/** The end as a reader of committed records sees it. */
const COMMITTED_ONLY = 1;
const ASK_MS = 3_000;
/** Tries at a partition whose leader is not where it was said to be: 4 s in all. */
const LEADER_TRIES = 40;

/**
 * Offsets of a point in each log, by partition: the first record that is not older, the end where there is none.
 * @throws HttpError for the first partition that cannot be asked about
 */
export async function offsetsAt(
  cluster: Cluster,
  wanted: readonly TopicPartition[],
  point: PointInLog,
): Promise<Map<string, number>> {
  const found = await ask(cluster, wanted, typeof point === 'number' ? point : ENDS[point]);
  const beyond = wanted.filter((one) => (found.get(partitionKey(one)) ?? -1) < 0);
  if (beyond.length === 0) return found;
  return new Map([...found, ...(await ask(cluster, beyond, ENDS.latest))]);
}

async function ask(
  cluster: Cluster,
  wanted: readonly TopicPartition[],
  timestamp: number,
): Promise<Map<string, number>> {
  const offsets = new Map<string, number>();
  let left = wanted;
  for (let tries = 1; left.length > 0; tries++) {
    if (tries > 1) {
      await pause(LEADER_PAUSE_MS);
      await cluster.refresh([...new Set(left.map(({ topic }) => topic))]);
    }
    const stale = await askLeaders(cluster, left, timestamp, offsets);
    const [first] = stale;
    if (first !== undefined && tries === LEADER_TRIES)
      throw kafkaRefusal('LEADER_NOT_AVAILABLE', `topic ${first.topic}, partition ${first.partition}`);
    left = stale;
  }
  return offsets;
}

/** Puts what the leaders answer into `offsets`; resolves to the partitions that they do not lead. */
async function askLeaders(
  cluster: Cluster,
  wanted: readonly TopicPartition[],
  timestamp: number,
  offsets: Map<string, number>,
): Promise<TopicPartition[]> {
  const topics = await cluster.topics(wanted.map(({ topic }) => topic));
  const byLeader = groupBy(wanted, (one) => leaderOf(one, topics));
  const stale = [...(byLeader.get(-1) ?? [])];
  byLeader.delete(-1);
  await Promise.all(
    [...byLeader].map(async ([node, asked]) => {
      const byTopic = groupBy(asked, ({ topic }) => topic);
      const request = [...byTopic].map(([topic, partitions]) => ({
        topic,
        partitions: [...new Set(partitions.map(({ partition }) => partition))].map((partition) => ({
          partition,
          timestamp,
        })),
      }));
      const args = { isolationLevel: COMMITTED_ONLY, topics: request };
      const reply = await cluster
        .request<OffsetsReply>(node, 'control', 'ListOffsets', args, ASK_MS)
        .catch((error: unknown) => {
          throw translateError(error);
        });
      for (const { topic, partitions } of reply.responses) {
        for (const { partition, errorCode, offset } of partitions) {
          if (errorCode === 0) offsets.set(partitionKey({ topic, partition }), Number(offset));
          else if (STALE_LEADER.has(errorType(errorCode))) stale.push({ topic, partition });
          else throw kafkaCodeRefusal(errorCode, `topic ${topic}, partition ${partition}`);
        }
      }
    }),
  );
  return stale;
}
