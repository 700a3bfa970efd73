import { kafkaType } from './errors.js';
import { HeldBatch } from './held-batch.js';
import { HeldBatches } from './held-batches.js';
import { OffsetCommits } from './offset-commits.js';
import { toMessage } from './records.js';
import { endedWithin } from './waits.js';
/** A held batch occupies one; with more partitions than that, the rest of a fetch waits for its turn. They cost little. */
const WORKERS = 256;
/** A final or hurried commit gets so long, in ms. */
const COMMIT_MS = 2_000;
/** One life of one consumer in its group: from joining until it leaves or dies. It is not revived; a new one is made. */
export class GroupMember {
    options;
    /** Topic -> partitions; empty until joined. */
    assignment = new Map();
    state = 'joining';
    /** Why it died. */
    failure;
    batches = new HeldBatches();
    commits;
    started;
    waiters = new Set();
    lastSign;
    constructor(options) {
        this.options = options;
        this.lastSign = options.now();
        this.commits = new OffsetCommits({
            consumer: options.consumer,
            isJoined: () => this.state === 'joined',
            isAssigned: (partition) => this.isAssigned(partition),
            log: options.log,
        });
        if (options.commitIntervalMs !== undefined)
            this.commits.repeat(options.commitIntervalMs);
        this.listen();
        this.started = this.start();
    }
    /** Dead, or so silent that kafkajs must have lost it without a word. */
    get isLost() {
        if (this.state === 'dead' || this.state === 'closed')
            return true;
        // while it joins, the broker rightly keeps it waiting, and kafkajs has a timeout of its own
        return this.state === 'joined' && this.options.now() - this.lastSign > this.options.silenceMs;
    }
    /** What is there now, up to the limits; `undefined` when nothing is. */
    take(maxRecords, maxBytes) {
        const parts = this.batches.take(maxRecords, maxBytes);
        if (parts.length === 0)
            return undefined;
        return {
            messages: parts.flatMap(({ batch, records }) => records.map((record) => toMessage(batch.topic, batch.partition, record))),
            arrived: () => this.arrived(parts),
            putBack: () => {
                for (const { batch, records } of parts)
                    batch.putBack(records);
                this.wake();
            },
        };
    }
    /** Resolves at the next change: records, a join, death, or `signal`. */
    change(signal) {
        return new Promise((resolve) => {
            const wake = () => {
                signal.removeEventListener('abort', wake);
                this.waiters.delete(wake);
                resolve();
            };
            if (signal.aborted)
                return resolve();
            this.waiters.add(wake);
            signal.addEventListener('abort', wake);
        });
    }
    /** Commits (where commits are automatic), leaves the group, disconnects. */
    async close() {
        if (this.state === 'closed')
            return;
        this.commits.stop();
        await this.commitInHaste();
        this.state = 'closed';
        this.batches.releaseAll();
        this.wake();
        // kafkajs forgets to stop a consumer that is told to while it joins
        await this.started;
        await this.options.consumer.disconnect().catch(() => { });
    }
    async start() {
        const { consumer, topics, fromBeginning } = this.options;
        try {
            await consumer.connect();
            await consumer.subscribe({ topics: [...topics], fromBeginning });
            await consumer.run({
                autoCommit: false,
                eachBatchAutoResolve: false,
                partitionsConsumedConcurrently: WORKERS,
                eachBatch: (payload) => this.hold(payload),
            });
        }
        catch (error) {
            this.die(error);
            await consumer.disconnect().catch(() => { });
        }
    }
    listen() {
        const { consumer, now } = this.options;
        const { GROUP_JOIN, CRASH, FETCH, HEARTBEAT, REBALANCING } = consumer.events;
        consumer.on(GROUP_JOIN, ({ payload }) => {
            // what was delivered before and not committed is read again from here
            this.commits.forget();
            this.batches.releaseAll();
            this.assignment = new Map(Object.entries(payload.memberAssignment));
            if (this.state === 'joining')
                this.state = 'joined';
            this.lastSign = now();
            this.wake();
        });
        consumer.on(REBALANCING, () => {
            if (this.state === 'joined')
                this.state = 'joining';
            this.lastSign = now();
        });
        const alive = () => {
            this.lastSign = now();
        };
        consumer.on(FETCH, alive);
        consumer.on(HEARTBEAT, alive);
        consumer.on(CRASH, ({ payload }) => this.die(payload.error));
    }
    async hold(payload) {
        const batch = new HeldBatch(payload);
        this.batches.add(batch);
        this.wake();
        try {
            await batch.hold();
        }
        catch (error) {
            const rebalances = kafkaType(error) === 'REBALANCE_IN_PROGRESS';
            if (rebalances)
                await this.commitInHaste();
            this.batches.releaseAll();
            throw error;
        }
        finally {
            this.batches.remove(batch);
        }
    }
    arrived(parts) {
        for (const { batch, records } of parts) {
            const { topic, partition, isOver } = batch;
            // a batch that was released meanwhile belongs to an earlier membership: it is read again
            if (isOver)
                continue;
            const offset = Number(records.at(-1)?.offset) + 1;
            this.commits.delivered({ topic, partition, offset });
            batch.arrived(records);
        }
    }
    isAssigned({ topic, partition }) {
        return this.assignment.get(topic)?.includes(partition) === true;
    }
    async commitInHaste() {
        if (this.options.commitIntervalMs === undefined || this.state !== 'joined')
            return;
        await endedWithin(COMMIT_MS, this.commits.commitDelivered());
    }
    die(error) {
        if (this.state === 'closed' || this.state === 'dead')
            return;
        this.state = 'dead';
        this.failure = error;
        this.commits.stop();
        this.batches.releaseAll();
        this.wake();
    }
    wake() {
        for (const wake of [...this.waiters])
            wake();
    }
}
//# sourceMappingURL=group-member.js.map