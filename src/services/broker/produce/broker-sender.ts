import { groupBy } from '../../../lib/group-by.js';
import type { ClusterCounters } from '../cluster-counters.js';
import { kafkaRefusal, translateError } from '../errors.js';
import type { Cluster } from '../kafka/cluster.js';
import { errorType } from '../kafka/kafkajs-internals.js';
import { partitionKey } from '../kafka/partitions.js';
import { type Compression, encodeRecordBatches } from '../records/record-encoder.js';
import { type ProducedPartition, produceCall, type TopicBatches } from './produce-call.js';
import { type Batch, type Outgoing, ProduceQueue } from './produce-queue.js';

/** Bytes of one partition's part of a send. */
const BATCH_BYTES = 256 * 1024;
/** Bytes of a whole send. */
const SEND_BYTES = 1024 * 1024;
/** What the answer may take beyond the time that the broker has, in ms. */
const GRACE_MS = 500;
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
  private readonly queue = new ProduceQueue(BATCH_BYTES);
  private sending = false;

  /**
   * @param reroute gets what is to be written to a partition that this broker does not lead, in its order
   * @param timeoutMs how long the broker may wait for its replicas
   */
  constructor(
    private readonly node: number,
    private readonly cluster: Cluster,
    private readonly timeoutMs: number,
    private readonly compression: Compression,
    private readonly counters: ClusterCounters,
    private readonly reroute: (records: Outgoing[]) => void,
  ) {}

  add(record: Outgoing): void {
    this.queue.add(record);
    if (this.sending) return;
    this.sending = true;
    // after the other records of this request, and the requests of this turn of the event loop
    setImmediate(() => void this.drain());
  }

  private async drain(): Promise<void> {
    while (!this.queue.isEmpty) {
      const batches = this.queue.take(SEND_BYTES);
      if (batches.length > 0) await this.send(batches);
    }
    this.sending = false;
  }

  private async send(batches: readonly Batch[]): Promise<void> {
    let produced: ProducedPartition[];
    try {
      const call = produceCall(await encoded(batches, this.compression), this.timeoutMs);
      this.counters.sends += 1;
      for (const { records } of batches) this.counters.records += records.length;
      produced = await this.cluster.call(this.node, 'produce', call, this.timeoutMs + GRACE_MS);
    } catch (error) {
      const translated = translateError(error);
      for (const batch of batches) this.fail(batch.records, translated);
      // the connection to it may be gone because the broker is: what is known of the topics is no longer to be trusted
      void this.cluster.refresh(batches.map(({ topic }) => topic)).catch(() => {});
      return;
    }
    const replies = new Map(produced.map((one) => [partitionKey(one), one]));
    for (const batch of batches) this.settle(batch, replies.get(partitionKey(batch)));
  }

  private settle({ topic, partition, records }: Batch, reply: ProducedPartition | undefined): void {
    if (reply?.errorCode === OK) {
      const appendTime = reply.appendTime < 0 ? undefined : reply.appendTime;
      for (const [i, record] of records.entries()) record.succeed(reply.baseOffset + i, appendTime);
      return;
    }
    const type = reply === undefined ? 'UNKNOWN_TOPIC_OR_PARTITION' : errorType(reply.errorCode);
    if (STALE.has(type) && records.every((record) => performance.now() < record.giveUpAt)) {
      // what waits behind them must not overtake them
      for (const record of records) record.misses++;
      this.reroute([...records, ...this.queue.takeAll({ topic, partition })]);
    } else if (RECORD_AT_FAULT.has(type) && records.length > 1) {
      // halves, so that only the records at fault are refused, whoever sent the others
      const middle = records.length >> 1;
      this.queue.addFirst(records.slice(middle));
      this.queue.addFirst(records.slice(0, middle));
    } else {
      this.fail(records, kafkaRefusal(type, `topic ${topic}, partition ${partition}`));
    }
  }

  private fail(records: readonly Outgoing[], error: Error): void {
    this.counters.unproduced += records.length;
    failAll(records, error);
  }
}

export function failAll(records: readonly Outgoing[], error: Error): void {
  for (const record of records) record.fail(error);
}

async function encoded(batches: readonly Batch[], compression: Compression): Promise<TopicBatches[]> {
  const bytes = await encodeRecordBatches(
    batches.map(({ records }) => records.map(({ record }) => record)),
    compression,
  );
  const written = batches.map(({ topic, partition }, i) => ({ topic, partition, batch: bytes[i] as Buffer }));
  return [...groupBy(written, ({ topic }) => topic)].map(([topic, partitions]) => ({ topic, partitions }));
}
