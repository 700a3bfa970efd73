import { HttpError } from '../../http/errors.js';
import { IdleRegistry } from '../../lib/idle-registry.js';
import { createConsumer } from './client.js';
import { ConsumerInstance } from './consumer-instance.js';
import { GroupMember } from './group-member.js';
import { committedOffsets } from './group-offsets.js';
import { subscriptionAssigner } from './subscription-assigner.js';
/** Every consumer instance of one cluster: made by its first consume, closed when idle, asked to or at the stop. */
export class ConsumerInstances {
    options;
    registry;
    assigner;
    constructor(options) {
        this.options = options;
        const { cluster, log, idleTimeoutMs } = options;
        this.registry = new IdleRegistry({
            idleMs: idleTimeoutMs,
            close: async (instance, reason) => {
                await instance.close();
                log.info({ group: instance.group, instance: instance.name, reason }, 'consumer instance closed');
            },
        });
        this.assigner = subscriptionAssigner(async (topics) => {
            const known = await cluster.topics(topics, true);
            return new Map([...known].map(([name, { partitions }]) => [name, partitions.length]));
        });
    }
    /**
     * Records for the instance, which is made with `headers` when it does not exist.
     * @param deadline aborts when the client's time is over or it went away
     * @throws HttpError 404 unknown topic, 400 no offset to begin at, 409 too many instances, 503 Kafka away
     */
    async consume(name, topics, headers, deadline) {
        await this.options.cluster.existing(topics);
        const hold = await this.registry.hold(keyOf(name), () => this.create(name, topics, headers));
        try {
            const consumed = await hold.value.consume(topics, deadline);
            // nothing may mean that Kafka is away, and the caller is to know
            if (consumed.messages.length === 0)
                await this.checkBackend(consumed);
            return {
                ...consumed,
                settle: (arrived) => {
                    consumed.settle(arrived);
                    hold.release();
                },
            };
        }
        catch (error) {
            hold.release();
            throw error;
        }
    }
    /** @throws HttpError 404 when there is no such instance */
    async commit(name, positions, deadline) {
        const hold = await this.registry.hold(keyOf(name), () => Promise.reject(this.unknown(name)));
        try {
            await hold.value.commit(positions, deadline);
        }
        finally {
            hold.release();
        }
    }
    /** @throws HttpError 404 when there is no such instance */
    async remove(name) {
        if (!(await this.registry.close(keyOf(name))))
            throw this.unknown(name);
    }
    list() {
        const groups = new Map();
        for (const { group, name, assignment } of this.registry.values()) {
            const instances = groups.get(group) ?? [];
            groups.set(group, instances);
            const topics = [...assignment].map(([topic, partitions]) => ({ topic, partitions: [...partitions] }));
            instances.push({ name, topics });
        }
        return [...groups].map(([name, instances]) => ({ name, instances }));
    }
    close() {
        return this.registry.closeAll();
    }
    async checkBackend(consumed) {
        try {
            await this.options.cluster.check();
        }
        catch (error) {
            consumed.settle(false);
            throw error;
        }
    }
    async create({ group, instance }, topics, headers) {
        const { maxRecords, maxBytes } = this.options;
        await this.checkLimit();
        if (headers['broker-auto-offset-reset'] === 'none')
            await this.checkCommitted(group, topics);
        const createMember = (wanted) => this.createMember(group, instance, wanted, headers);
        return new ConsumerInstance({ group, name: instance, topics, maxRecords, maxBytes, createMember });
    }
    createMember(group, instance, topics, headers) {
        const { brokers, maxBytes, log, now } = this.options;
        const sessionTimeoutMs = headers['broker-session-timeout-ms'] ?? this.options.sessionTimeoutMs;
        const consumer = createConsumer({
            brokers,
            groupId: group,
            // Kafka's tools show it as client id and at the beginning of the member id
            clientId: instance,
            assigner: this.assigner,
            sessionTimeoutMs,
            fetchBytes: maxBytes,
            log,
        });
        return new GroupMember({
            consumer,
            topics,
            fromBeginning: headers['broker-auto-offset-reset'] !== 'latest',
            commitIntervalMs: headers['broker-enable-auto-commit']
                ? headers['broker-auto-commit-interval']
                : undefined,
            silenceMs: sessionTimeoutMs,
            log,
            now,
        });
    }
    /** There is no use in more instances than partitions: the contract's limit. */
    async checkLimit() {
        const topics = await this.options.cluster.allTopics();
        const partitions = topics.reduce((sum, topic) => sum + topic.partitions.length, 0);
        if (this.registry.size <= partitions)
            return;
        const text = `There are as many consumer instances as partitions of all topics (${partitions}); delete one first.`;
        throw new HttpError('conflict', text);
    }
    async checkCommitted(group, topics) {
        const { cluster } = this.options;
        const offsets = await committedOffsets(cluster, group, await cluster.existing(topics));
        const without = offsets.find(({ offset }) => offset < 0);
        if (without === undefined)
            return;
        const where = `partition ${without.partition} of ${without.topic}`;
        throw new HttpError('invalid_request', `Group ${group} has no committed offset for ${where}, and auto offset reset is none.`);
    }
    unknown({ group, instance }) {
        const idle = `it was never used, was deleted, or nobody consumed for ${this.options.idleTimeoutMs} ms`;
        return new HttpError('not_found', `There is no instance ${instance} in group ${group}: ${idle}.`);
    }
}
function keyOf({ group, instance }) {
    return JSON.stringify([group, instance]);
}
//# sourceMappingURL=consumer-instances.js.map