import { MemberAssignment, MemberMetadata } from './client.js';
const VERSION = 0;
/**
 * Deals each topic's partitions over those members of a group that subscribed to it, and evens out how many each gets.
 * kafkajs' own assigner deals the leader's topics over all members, so that members with different topics get
 * partitions that they did not ask for, and some partitions go to nobody.
 * @param partitionsOf partition counts of the topics that exist
 */
export function subscriptionAssigner(partitionsOf) {
    return () => ({
        name: 'portico-subscriptions',
        version: VERSION,
        protocol: ({ topics }) => ({
            name: 'portico-subscriptions',
            metadata: MemberMetadata.encode({ version: VERSION, topics, userData: NOTHING }),
        }),
        assign: async ({ members }) => {
            const subscriptions = members.map(({ memberId, memberMetadata }) => ({
                member: memberId,
                topics: MemberMetadata.decode(memberMetadata)?.topics ?? [],
            }));
            const counts = await partitionsOf([...new Set(subscriptions.flatMap(({ topics }) => topics))]);
            return [...deal(subscriptions, counts)].map(([memberId, assignment]) => ({
                memberId,
                memberAssignment: MemberAssignment.encode({
                    version: VERSION,
                    assignment: Object.fromEntries(assignment),
                    userData: NOTHING,
                }),
            }));
        },
    });
}
const NOTHING = Buffer.alloc(0);
/** Member -> topic -> partitions; the same for the same input in whatever order. */
export function deal(subscriptions, partitionCounts) {
    const members = [...subscriptions].sort((a, b) => (a.member < b.member ? -1 : 1));
    const dealt = new Map(members.map(({ member }) => [member, new Map()]));
    const load = new Map(members.map(({ member }) => [member, 0]));
    for (const [topic, count] of [...partitionCounts].sort(([a], [b]) => (a < b ? -1 : 1))) {
        const subscribers = members.filter(({ topics }) => topics.includes(topic)).map(({ member }) => member);
        if (subscribers.length === 0)
            continue;
        for (let partition = 0; partition < count; partition++) {
            const least = subscribers.reduce((a, b) => ((load.get(b) ?? 0) < (load.get(a) ?? 0) ? b : a));
            load.set(least, (load.get(least) ?? 0) + 1);
            const topics = dealt.get(least);
            topics.set(topic, [...(topics.get(topic) ?? []), partition]);
        }
    }
    return dealt;
}
//# sourceMappingURL=subscription-assigner.js.map