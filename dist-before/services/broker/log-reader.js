import { kafkaCodeRefusal, kafkaRefusal } from './errors.js';
import { errorType, readableRecords } from './kafkajs-internals.js';
import { sizeOf, toMessage } from './records.js';
const OK = 0;
const COMMITTED_ONLY = 1;
/** How long the answer to a Fetch may take beyond the wait that it asks for, in ms. */
const FETCH_GRACE_MS = 3_000;
const STALE = new Set([
    'NOT_LEADER_FOR_PARTITION',
    'LEADER_NOT_AVAILABLE',
    'FENCED_LEADER_EPOCH',
    'UNKNOWN_LEADER_EPOCH',
]);
/** One Fetch request to one broker; no partition twice. Replies by position, in no particular order. */
export async function fetchOnce(cluster, positions, { node, lane, maxWaitMs, maxBytes }) {
    const byTopic = new Map();
    for (const position of positions) {
        const same = byTopic.get(position.topic);
        if (same === undefined)
            byTopic.set(position.topic, [position]);
        else
            same.push(position);
    }
    const topics = [...byTopic].map(([topic, wanted]) => ({
        topic,
        partitions: wanted.map(({ partition, offset }) => ({ partition, fetchOffset: String(offset), maxBytes })),
    }));
    const reply = await cluster.request(node, lane, 'Fetch', { maxWaitTime: maxWaitMs, minBytes: 1, maxBytes, isolationLevel: COMMITTED_ONLY, topics, rackId: '' }, maxWaitMs + FETCH_GRACE_MS);
    const replies = new Map();
    for (const { topicName, partitions } of reply.responses) {
        for (const one of partitions) {
            const position = byTopic.get(topicName)?.find(({ partition }) => partition === one.partition);
            if (position !== undefined)
                replies.set(position, one);
        }
    }
    return replies;
}
/** What a reply for one partition holds for a reader. */
export function readReply({ topic, partition, offset }, reply) {
    const nothing = { messages: [], bytes: 0, next: offset, error: undefined, isStale: false };
    const about = `topic ${topic}, partition ${partition}, offset ${offset}`;
    if (reply === undefined)
        return { ...nothing, error: kafkaRefusal('UNKNOWN_TOPIC_OR_PARTITION', about) };
    if (reply.errorCode !== OK) {
        const isStale = STALE.has(errorType(reply.errorCode));
        return { ...nothing, isStale, error: kafkaCodeRefusal(reply.errorCode, about) };
    }
    const { messages, holdsRecords, lastOffset } = readableRecords(topic, String(offset), reply);
    return {
        ...nothing,
        messages: messages.map((record) => toMessage(topic, partition, record)),
        bytes: messages.reduce((sum, record) => sum + sizeOf(record), 0),
        next: holdsRecords ? Math.max(offset, Number(lastOffset) + 1) : offset,
    };
}
//# sourceMappingURL=log-reader.js.map