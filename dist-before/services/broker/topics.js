const OK = 0;
const LEADER_NOT_AVAILABLE = 5;
/** The topics of a reply that exist; one whose election is still going on is there, without a leader. */
export function topicsOf(reply) {
    return reply.topicMetadata
        .filter(({ topicErrorCode }) => topicErrorCode === OK || topicErrorCode === LEADER_NOT_AVAILABLE)
        .map(({ topic, isInternal, partitionMetadata }) => ({
        name: topic,
        isInternal,
        partitions: partitionMetadata
            .map(({ partitionId, leader }) => ({ id: partitionId, leader }))
            .sort((a, b) => a.id - b.id),
    }));
}
//# sourceMappingURL=topics.js.map