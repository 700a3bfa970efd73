import { sizeOf } from './records.js';
/** The batches that one consumer holds. */
export class HeldBatches {
    batches = [];
    add(batch) {
        this.batches.push(batch);
    }
    /** The batch is over: what is left of it is read again. */
    remove(batch) {
        batch.release();
        const at = this.batches.indexOf(batch);
        if (at >= 0)
            this.batches.splice(at, 1);
    }
    /** What is there, batch after batch, up to the limits; empty when nothing is. */
    take(maxRecords, maxBytes) {
        const parts = [];
        let recordsLeft = maxRecords;
        let bytesLeft = maxBytes;
        for (const batch of this.batches) {
            if (recordsLeft <= 0 || bytesLeft <= 0)
                break;
            const records = batch.take(recordsLeft, bytesLeft);
            if (records.length === 0)
                continue;
            parts.push({ batch, records });
            recordsLeft -= records.length;
            bytesLeft -= records.reduce((sum, record) => sum + sizeOf(record), 0);
        }
        // the next reply begins with another partition
        if (parts.length > 0)
            this.batches.push(...this.batches.splice(0, 1));
        return parts;
    }
    /** Lets every handler return: a group can only be joined again when all of them have. */
    releaseAll() {
        for (const batch of this.batches)
            batch.release();
    }
}
//# sourceMappingURL=held-batches.js.map