import { MemberAssignment, MemberMetadata } from '../kafka/client.js';
import type { Cluster } from '../kafka/cluster.js';
import type { AssignmentOf, GroupProtocol } from './group-protocol.js';

const VERSION = 0;
const NAME = 'portico-subscriptions';
const NOTHING = Buffer.alloc(0);

/**
 * Deals each topic's partitions over those members of a group that subscribed to it, and evens out how many each gets.
 * kafkajs' own assigner deals the leader's topics over all members, so that members with different topics get
 * partitions that they did not ask for, and some partitions go to nobody.
 * @param onCounts is told of the partition counts that the member joins with
 */
export function subscriptionProtocol(
  topics: readonly string[],
  cluster: Cluster,
  onCounts: (counts: string) => void,
): GroupProtocol {
  return {
    name: NAME,
    metadata: async () => {
      const counts = await partitionCounts(cluster, topics);
      onCounts(counts);
      // the broker lets a member that joins again rebalance the group when it says something else than before
      return MemberMetadata.encode({ version: VERSION, topics: [...topics], userData: Buffer.from(counts) });
    },
    assign: async (members) => {
      const subscriptions = members.map(({ memberId, memberMetadata }) => ({
        member: memberId,
        topics: MemberMetadata.decode(memberMetadata)?.topics ?? [],
      }));
      const known = await cluster.topics([...new Set(subscriptions.flatMap((one) => one.topics))], true);
      const counts = new Map([...known].map(([name, { partitions }]) => [name, partitions.length]));
      return [...deal(subscriptions, counts)].map(([memberId, assignment]) =>
        assignmentOf(memberId, assignment),
      );
    },
    decode: (bytes) =>
      new Map(bytes.length === 0 ? [] : Object.entries(MemberAssignment.decode(bytes)?.assignment ?? {})),
  };
}

/** How many partitions each topic has, as a text that changes when one of them does. */
export async function partitionCounts(cluster: Cluster, topics: readonly string[]): Promise<string> {
  const known = await cluster.topics(topics);
  return JSON.stringify(topics.map((topic) => known.get(topic)?.partitions.length ?? 0));
}

function assignmentOf(memberId: string, assignment: ReadonlyMap<string, number[]>): AssignmentOf {
  return {
    memberId,
    memberAssignment: MemberAssignment.encode({
      version: VERSION,
      assignment: Object.fromEntries(assignment),
      userData: NOTHING,
    }),
  };
}

export interface Subscription {
  readonly member: string;
  readonly topics: readonly string[];
}

/** Member -> topic -> partitions; the same for the same input in whatever order. */
export function deal(
  subscriptions: readonly Subscription[],
  partitionCounts: ReadonlyMap<string, number>,
): Map<string, Map<string, number[]>> {
  const members = [...subscriptions].sort((a, b) => (a.member < b.member ? -1 : 1));
  const dealt = new Map(members.map(({ member }) => [member, new Map<string, number[]>()]));
  const load = new Map(members.map(({ member }) => [member, 0]));
  for (const [topic, count] of [...partitionCounts].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const subscribers = members.filter(({ topics }) => topics.includes(topic)).map(({ member }) => member);
    if (subscribers.length === 0) continue;
    for (let partition = 0; partition < count; partition++) {
      const least = subscribers.reduce((a, b) => ((load.get(b) ?? 0) < (load.get(a) ?? 0) ? b : a));
      load.set(least, (load.get(least) ?? 0) + 1);
      const topics = dealt.get(least) as Map<string, number[]>;
      topics.set(topic, [...(topics.get(topic) ?? []), partition]);
    }
  }
  return dealt;
}
