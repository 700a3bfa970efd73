/**
 * What waits for one broker. While a send is under way, the records of other requests gather here and go out together
 * with the next: no artificial delay, and the more requests there are the fewer sends they need. Order in a partition
 * is the order of arrival.
 */
export class ProduceQueue {
    batchBytes;
    partitions = new Map();
    /** @param batchBytes of one partition's part: well below the 1 MiB that a broker accepts by default */
    constructor(batchBytes) {
        this.batchBytes = batchBytes;
    }
    get isEmpty() {
        return this.partitions.size === 0;
    }
    add(record) {
        const waiting = this.waiting(record);
        const last = waiting.at(-1);
        if (last !== undefined && !last.sealed && last.bytes + record.bytes <= this.batchBytes) {
            last.records.push(record);
            last.bytes += record.bytes;
        }
        else {
            waiting.push(batchOf([record], false));
        }
    }
    /** Before all that waits for the same partition. */
    addFirst(records) {
        const [first] = records;
        if (first !== undefined)
            this.waiting(first).unshift(batchOf(records, true));
    }
    /** The next send: the first batch of each partition, up to `maxBytes` together, at least one. */
    take(maxBytes) {
        const taken = [];
        let bytes = 0;
        for (const [key, waiting] of [...this.partitions]) {
            const first = waiting[0];
            if (taken.length > 0 && bytes + first.bytes > maxBytes)
                break;
            waiting.shift();
            // to the end of the line, so that a busy partition does not keep the others waiting
            this.partitions.delete(key);
            if (waiting.length > 0)
                this.partitions.set(key, waiting);
            const wanted = first.records.filter((record) => !record.isAbandoned());
            if (wanted.length === 0)
                continue;
            taken.push(wanted.length === first.records.length ? first : batchOf(wanted, true));
            bytes += first.bytes;
        }
        return taken;
    }
    waiting({ topic, partition }) {
        const key = `${partition} ${topic}`;
        let waiting = this.partitions.get(key);
        if (waiting === undefined) {
            waiting = [];
            this.partitions.set(key, waiting);
        }
        return waiting;
    }
}
function batchOf(records, sealed) {
    const { topic, partition } = records[0];
    return { topic, partition, records, bytes: records.reduce((sum, { bytes }) => sum + bytes, 0), sealed };
}
//# sourceMappingURL=produce-queue.js.map