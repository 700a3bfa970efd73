import { partitionKey, type TopicPartition } from '../kafka/partitions.js';
import type { RecordToWrite } from '../records/record-encoder.js';

/** One record on its way to one partition. */
export interface Outgoing extends TopicPartition {
  readonly bytes: number;
  readonly record: RecordToWrite;
  /** Nobody waits for it any more: it is not sent when it has not been yet. */
  isCancelled(): boolean;
  /** @param appendTime ms, where the topic keeps the broker's time, else `undefined` */
  succeed(offset: number, appendTime: number | undefined): void;
  fail(error: Error): void;
  /** `performance.now()` after which it is not sent again to another leader. */
  readonly giveUpAt: number;
  /** How often it was sent to a broker that was not the leader. */
  misses: number;
}

/** Records of one partition that go out together: the broker takes or refuses them as one. */
export interface Batch {
  readonly topic: string;
  readonly partition: number;
  readonly records: Outgoing[];
  bytes: number;
  /** Takes no more: it is a part of one that was refused. */
  readonly sealed: boolean;
}

/**
 * What waits for one broker. While a send is under way, the records of other requests gather here and go out together
 * with the next: no artificial delay, and the more requests there are the fewer sends they need. Order in a partition
 * is the order of arrival.
 */
export class ProduceQueue {
  /** Records that wait. */
  size = 0;
  private readonly partitions = new Map<string, Batch[]>();

  /** @param batchBytes of one partition's part: well below the 1 MiB that a broker accepts by default */
  constructor(private readonly batchBytes: number) {}

  get isEmpty(): boolean {
    return this.partitions.size === 0;
  }

  add(record: Outgoing): void {
    this.size += 1;
    const waiting = this.waiting(record);
    const last = waiting.at(-1);
    if (last !== undefined && !last.sealed && last.bytes + record.bytes <= this.batchBytes) {
      last.records.push(record);
      last.bytes += record.bytes;
    } else {
      waiting.push(batchOf([record], false));
    }
  }

  /** Before all that waits for the same partition. */
  addFirst(records: Outgoing[]): void {
    const [first] = records;
    this.size += records.length;
    if (first !== undefined) this.waiting(first).unshift(batchOf(records, true));
  }

  /** The next send: the first batch of each partition, up to `maxBytes` together, at least one. */
  take(maxBytes: number): Batch[] {
    const taken: Batch[] = [];
    let bytes = 0;
    for (const [key, waiting] of [...this.partitions]) {
      const first = waiting[0] as Batch;
      if (taken.length > 0 && bytes + first.bytes > maxBytes) break;
      waiting.shift();
      this.size -= first.records.length;
      // to the end of the line, so that a busy partition does not keep the others waiting
      this.partitions.delete(key);
      if (waiting.length > 0) this.partitions.set(key, waiting);
      const wanted = first.records.filter((record) => !record.isCancelled());
      if (wanted.length === 0) continue;
      taken.push(wanted.length === first.records.length ? first : batchOf(wanted, true));
      bytes += first.bytes;
    }
    return taken;
  }

  /** All that waits for one partition, in its order. */
  takeAll(from: TopicPartition): Outgoing[] {
    const key = partitionKey(from);
    const records = (this.partitions.get(key) ?? []).flatMap((batch) => batch.records);
    this.partitions.delete(key);
    this.size -= records.length;
    return records;
  }

  private waiting(record: Outgoing): Batch[] {
    const key = partitionKey(record);
    let waiting = this.partitions.get(key);
    if (waiting === undefined) {
      waiting = [];
      this.partitions.set(key, waiting);
    }
    return waiting;
  }
}

function batchOf(records: Outgoing[], sealed: boolean): Batch {
  const { topic, partition } = records[0] as Outgoing;
  return { topic, partition, records, bytes: records.reduce((sum, { bytes }) => sum + bytes, 0), sealed };
}
