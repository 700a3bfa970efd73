/** What one consumer delivered and has not committed yet. */
export class OffsetCommits {
    options;
    uncommitted = new Map();
    lastInTurn = Promise.resolve();
    timer;
    constructor(options) {
        this.options = options;
    }
    /** Commits every `intervalMs` what was delivered meanwhile. */
    repeat(intervalMs) {
        this.timer = setInterval(() => {
            // what could not be committed is committed with the next
            if (this.uncommitted.size > 0 && this.options.isJoined())
                void this.commitDelivered().catch(() => { });
        }, intervalMs);
        this.timer.unref();
    }
    stop() {
        clearInterval(this.timer);
    }
    delivered(position) {
        this.uncommitted.set(keyOf(position), position);
    }
    /** Everything not committed is read again. */
    forget() {
        this.uncommitted.clear();
    }
    /** Commits what was delivered of the partitions that are still assigned. @throws what kafkajs throws */
    commitDelivered() {
        return this.inTurn(async () => {
            const positions = [...this.uncommitted.values()].filter(this.options.isAssigned);
            if (positions.length > 0)
                await this.send(positions);
        });
    }
    /** Commits exactly these. @throws what kafkajs throws, such as a rebalance */
    commit(positions) {
        return this.inTurn(async () => {
            await this.send(positions);
            // a later commit of what was delivered must not undo this one
            for (const position of positions)
                this.uncommitted.delete(keyOf(position));
        });
    }
    inTurn(commit) {
        const mine = this.lastInTurn.then(commit);
        this.lastInTurn = mine.catch((err) => {
            this.options.log.debug({ err }, 'offsets could not be committed');
        });
        return mine;
    }
    async send(positions) {
        const { consumer, isJoined } = this.options;
        const offsets = positions.map(({ topic, partition, offset }) => ({
            topic,
            partition,
            offset: String(offset),
        }));
        if (isJoined())
            await consumer.commitOffsets(offsets);
        if (!isJoined())
            throw new Error('the consumer left its group meanwhile');
        for (const position of positions) {
            if (this.uncommitted.get(keyOf(position)) === position)
                this.uncommitted.delete(keyOf(position));
        }
    }
}
function keyOf({ topic, partition }) {
    return `${partition} ${topic}`;
}
//# sourceMappingURL=offset-commits.js.map