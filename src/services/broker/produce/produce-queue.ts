import { partitionKey, type TopicPartition } from '../kafka/partitions.js';
import type { RecordToWrite } from '../records/record-encoder.js';

/** One record on its way to one partition. */
export interface Outgoing extends TopicPartition {
  /** Who sends it: what others send takes no more than its share of a send. */
  readonly owner: string;
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

/** A batch that holds records of several owners may be so much larger than that of one: still below what a broker accepts. */
const SHARED = 1.5;

/**
 * What waits for one broker. While a send is under way, the records of other requests gather here and go out together
 * with the next: no artificial delay, and the more requests there are the fewer sends they need. Each owner has its share
 * of a send, however much another has waiting; the order of one owner's records in a partition is that of their arrival.
 */
export class ProduceQueue {
  /** Records that wait. */
  size = 0;
  /** By owner, then by partition; who was served last stands last. */
  private readonly owners = new Map<string, Map<string, Batch[]>>();
  /** Parts of batches that were refused, by partition: nothing of it goes before them, or with them. */
  private readonly first = new Map<string, Batch[]>();

  /** @param batchBytes of one partition's part: well below the 1 MiB that a broker accepts by default */
  constructor(private readonly batchBytes: number) {}

  get isEmpty(): boolean {
    return this.size === 0;
  }

  add(record: Outgoing): void {
    this.size += 1;
    const waiting = this.waiting(record);
    const last = waiting.at(-1);
    if (last !== undefined && last.bytes + record.bytes <= this.batchBytes) {
      last.records.push(record);
      last.bytes += record.bytes;
    } else {
      waiting.push(batchOf([record], false));
    }
  }

  /** Before all that waits for the same partition. */
  addFirst(records: Outgoing[]): void {
    const [record] = records;
    if (record === undefined) return;
    this.size += records.length;
    const key = partitionKey(record);
    this.first.set(key, [batchOf(records, true), ...(this.first.get(key) ?? [])]);
  }

  /** The next send: of each owner the first batch of each partition, up to `maxBytes` together, at least one. */
  take(maxBytes: number): Batch[] {
    const send = new Send(this.batchBytes);
    this.size -= takeInTurn(this.first, send, maxBytes);
    let left = this.owners.size;
    for (const [owner, partitions] of [...this.owners]) {
      const share = send.bytes + (maxBytes - send.bytes) / left--;
      this.size -= takeInTurn(partitions, send, share, this.first);
      // to the end of the line
      this.owners.delete(owner);
      if (partitions.size > 0) this.owners.set(owner, partitions);
    }
    return send.batches;
  }

  /** All that waits for one partition, in its order. */
  takeAll(from: TopicPartition): Outgoing[] {
    const key = partitionKey(from);
    const records: Outgoing[] = [];
    for (const partitions of [this.first, ...this.owners.values()]) {
      for (const batch of partitions.get(key) ?? []) records.push(...batch.records);
      partitions.delete(key);
    }
    this.size -= records.length;
    return records;
  }

  private waiting(record: Outgoing): Batch[] {
    let partitions = this.owners.get(record.owner);
    if (partitions === undefined) {
      partitions = new Map();
      this.owners.set(record.owner, partitions);
    }
    const key = partitionKey(record);
    let waiting = partitions.get(key);
    if (waiting === undefined) {
      waiting = [];
      partitions.set(key, waiting);
    }
    return waiting;
  }
}

/**
 * Takes the first batch of each partition as long as `send` holds no more than `bytes`.
 * @param before of whose partitions none is taken
 * @returns how many records no longer wait, those included that nobody waits for
 */
function takeInTurn(
  partitions: Map<string, Batch[]>,
  send: Send,
  bytes: number,
  before?: ReadonlyMap<string, unknown>,
): number {
  let count = 0;
  for (const [key, waiting] of [...partitions]) {
    const batch = waiting[0] as Batch;
    if (before?.has(key) || !send.mayHold(key, batch)) continue;
    if (!send.isEmpty && send.bytes + batch.bytes > bytes) break;
    waiting.shift();
    count += batch.records.length;
    // to the end of the line, so that a busy partition does not keep the others waiting
    partitions.delete(key);
    if (waiting.length > 0) partitions.set(key, waiting);
    const wanted = batch.records.filter((record) => !record.isCancelled());
    if (wanted.length === 0) continue;
    send.add(key, wanted.length === batch.records.length ? batch : batchOf(wanted, batch.sealed));
  }
  return count;
}

/** What goes out next: one batch a partition. */
class Send {
  bytes = 0;
  private readonly byPartition = new Map<string, Batch>();

  constructor(private readonly batchBytes: number) {}

  get isEmpty(): boolean {
    return this.byPartition.size === 0;
  }

  get batches(): Batch[] {
    return [...this.byPartition.values()];
  }

  mayHold(key: string, { bytes }: Batch): boolean {
    const there = this.byPartition.get(key);
    return there === undefined || (!there.sealed && there.bytes + bytes <= SHARED * this.batchBytes);
  }

  add(key: string, batch: Batch): void {
    const there = this.byPartition.get(key);
    this.bytes += batch.bytes;
    if (there === undefined) {
      this.byPartition.set(key, batch);
    } else {
      for (const record of batch.records) there.records.push(record);
      there.bytes += batch.bytes;
    }
  }
}

function batchOf(records: Outgoing[], sealed: boolean): Batch {
  const { topic, partition } = records[0] as Outgoing;
  return { topic, partition, records, bytes: records.reduce((sum, { bytes }) => sum + bytes, 0), sealed };
}
