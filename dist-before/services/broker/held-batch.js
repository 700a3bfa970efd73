import { sizeOf } from './records.js';
/** How long a batch that nobody takes from goes without a heartbeat, in ms. */
const HEARTBEAT_MS = 1_000;
/**
 * One batch that kafkajs delivered, held inside its handler until requests have taken all of it: a handler that does
 * not return is what keeps kafkajs from fetching more.
 */
export class HeldBatch {
    payload;
    next = 0;
    done = () => { };
    ended;
    isOver = false;
    constructor(payload) {
        this.payload = payload;
        this.ended = new Promise((resolve) => {
            this.done = () => {
                this.isOver = true;
                resolve();
            };
        });
    }
    get topic() {
        return this.payload.batch.topic;
    }
    get partition() {
        return this.payload.batch.partition;
    }
    /** The next records, up to the limits but at least one if any is left. */
    take(maxRecords, maxBytes) {
        const { messages } = this.payload.batch;
        const taken = [];
        for (let bytes = 0; this.next < messages.length && taken.length < maxRecords; this.next++) {
            const record = messages[this.next];
            bytes += sizeOf(record);
            if (taken.length > 0 && bytes > maxBytes)
                break;
            taken.push(record);
        }
        return taken;
    }
    putBack(records) {
        this.next -= records.length;
    }
    /** The records arrived: kafkajs goes on behind them, and fetches more once all of the batch has. */
    arrived(records) {
        const last = records.at(-1);
        if (last !== undefined && !this.isOver)
            this.payload.resolveOffset(last.offset);
        const { messages } = this.payload.batch;
        if (this.next === messages.length)
            this.done();
    }
    /** Lets the handler return with whatever is left: it will be read again from the committed offset. */
    release() {
        this.done();
    }
    /** Returns when the batch is over. @throws what a heartbeat throws, such as a rebalance */
    async hold() {
        while (!this.isOver && this.payload.isRunning() && !this.payload.isStale()) {
            await this.endedWithin(HEARTBEAT_MS);
            if (!this.isOver)
                await this.payload.heartbeat();
        }
    }
    async endedWithin(ms) {
        let timer;
        const tick = new Promise((resolve) => {
            timer = setTimeout(resolve, ms);
        });
        await Promise.race([this.ended, tick]);
        clearTimeout(timer);
    }
}
//# sourceMappingURL=held-batch.js.map