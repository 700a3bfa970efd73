import { kafkaRefusal, translateError } from './errors.js';
import { errorType } from './kafkajs-internals.js';
import { ProduceQueue } from './produce-queue.js';
/** Bytes of one partition's part of a send. */
const BATCH_BYTES = 512 * 1024;
/** Bytes of a whole send. */
const SEND_BYTES = 4 * 1024 * 1024;
/** acks from all replicas that are in sync */
const ALL_IN_SYNC = -1;
/** What the encoding adds to a record, in bytes; at most. */
export const RECORD_OVERHEAD = 40;
const OK = 0;
/** The broker is not, or no longer, the partition's leader: nothing was written. */
const STALE = new Set([
    'NOT_LEADER_FOR_PARTITION',
    'LEADER_NOT_AVAILABLE',
    'UNKNOWN_TOPIC_OR_PARTITION',
    'FENCED_LEADER_EPOCH',
]);
/** One record, or the sum of them, made the broker refuse the batch: nothing was written. */
const RECORD_AT_FAULT = new Set([
    'MESSAGE_TOO_LARGE',
    'RECORD_LIST_TOO_LARGE',
    'INVALID_TIMESTAMP',
    'INVALID_RECORD',
    'CORRUPT_MESSAGE',
]);
/** Sends the records for one broker, one send at a time. */
export class BrokerSender {
    node;
    cluster;
    timeoutMs;
    reroute;
    queue = new ProduceQueue(BATCH_BYTES);
    sending = false;
    /**
     * @param reroute gets what this broker does not lead any more
     * @param timeoutMs how long the broker may wait for its replicas
     */
    constructor(node, cluster, timeoutMs, reroute) {
        this.node = node;
        this.cluster = cluster;
        this.timeoutMs = timeoutMs;
        this.reroute = reroute;
    }
    add(record) {
        this.queue.add(record);
        if (this.sending)
            return;
        this.sending = true;
        // after the other records of this request, and the requests of this turn of the event loop
        setImmediate(() => void this.drain());
    }
    async drain() {
        while (!this.queue.isEmpty) {
            const batches = this.queue.take(SEND_BYTES);
            if (batches.length > 0)
                await this.send(batches);
        }
        this.sending = false;
    }
    async send(batches) {
        let reply;
        try {
            reply = await this.cluster.request(this.node, 'produce', 'Produce', { acks: ALL_IN_SYNC, timeout: this.timeoutMs, compression: 0, topicData: topicData(batches) }, this.timeoutMs + 500);
        }
        catch (error) {
            const translated = translateError(error);
            for (const batch of batches)
                failAll(batch.records, translated);
            // the connection to it may be gone because the broker is: what is known of the topics is no longer to be trusted
            void this.cluster.refresh(batches.map(({ topic }) => topic)).catch(() => { });
            return;
        }
        for (const batch of batches)
            await this.settle(batch, partitionReply(reply, batch));
    }
    async settle({ topic, partition, records }, reply) {
        if (reply?.errorCode === OK) {
            const appendTime = reply.logAppendTime === '-1' ? undefined : Number(reply.logAppendTime);
            const base = Number(reply.baseOffset);
            for (const [i, record] of records.entries())
                record.succeed(base + i, appendTime);
            return;
        }
        const type = reply === undefined ? 'UNKNOWN_TOPIC_OR_PARTITION' : errorType(reply.errorCode);
        if (STALE.has(type) && records.every((record) => record.misses === 0)) {
            for (const record of records)
                record.misses++;
            await this.reroute(records);
        }
        else if (RECORD_AT_FAULT.has(type) && records.length > 1) {
            // halves, so that only the records at fault are refused, whoever sent the others
            const middle = records.length >> 1;
            this.queue.addFirst(records.slice(middle));
            this.queue.addFirst(records.slice(0, middle));
        }
        else {
            failAll(records, kafkaRefusal(type, `topic ${topic}, partition ${partition}`));
        }
    }
}
function failAll(records, error) {
    for (const record of records)
        record.fail(error);
}
function topicData(batches) {
    const topics = new Map();
    for (const { topic, partition, records } of batches) {
        const partitions = topics.get(topic) ?? [];
        if (partitions.length === 0)
            topics.set(topic, partitions);
        partitions.push({ partition, messages: records.map(({ message }) => message) });
    }
    return [...topics].map(([topic, partitions]) => ({ topic, partitions }));
}
function partitionReply(reply, { topic, partition }) {
    return reply.topics
        .find(({ topicName }) => topicName === topic)
        ?.partitions.find((one) => one.partition === partition);
}
//# sourceMappingURL=broker-sender.js.map