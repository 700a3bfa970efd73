import { kafkaCodeRefusal, translateError } from './errors.js';
const ASK_MS = 2_000;
/** Offsets that a group has committed, whoever its members are. @throws HttpError */
export async function committedOffsets(cluster, group, topics) {
    const found = await cluster.ask('GroupCoordinator', {
        groupId: group,
    });
    if (found.errorCode !== 0)
        throw kafkaCodeRefusal(found.errorCode, `group ${group}`);
    const wanted = [...topics].map(([topic, { partitions }]) => ({
        topic,
        partitions: partitions.map(({ id }) => ({ partition: id })),
    }));
    const reply = await cluster
        .request(found.coordinator.nodeId, 'control', 'OffsetFetch', { groupId: group, topics: wanted }, ASK_MS)
        .catch((error) => {
        throw translateError(error);
    });
    return reply.responses.flatMap(({ topic, partitions }) => partitions.map(({ partition, offset, errorCode }) => {
        if (errorCode !== 0)
            throw kafkaCodeRefusal(errorCode, `group ${group}, topic ${topic}`);
        return { topic, partition, offset: Number(offset) };
    }));
}
//# sourceMappingURL=group-offsets.js.map