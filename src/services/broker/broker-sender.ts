import type { Cluster } from './cluster.js';
import { kafkaRefusal, translateError } from './errors.js';
import { errorType } from './kafkajs-internals.js';
import { type Batch, type Outgoing, ProduceQueue } from './produce-queue.js';

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

interface ProduceReply {
  readonly topics: readonly {
    readonly topicName: string;
    readonly partitions: readonly PartitionReply[];
  }[];
}

interface PartitionReply {
  readonly partition: number;
  readonly errorCode: number;
  readonly baseOffset: string;
  readonly logAppendTime: string;
}

/** Sends the records for one broker, one send at a time. */
export class BrokerSender {
  private readonly queue = new ProduceQueue(BATCH_BYTES);
  private sending = false;

  /**
   * @param reroute gets what this broker does not lead any more
   * @param timeoutMs how long the broker may wait for its replicas
   */
  constructor(
    private readonly node: number,
    private readonly cluster: Cluster,
    private readonly timeoutMs: number,
    private readonly reroute: (records: Outgoing[]) => Promise<void>,
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
    let reply: ProduceReply;
    try {
      reply = await this.cluster.request<ProduceReply>(
        this.node,
        'produce',
        'Produce',
        { acks: ALL_IN_SYNC, timeout: this.timeoutMs, compression: 0, topicData: topicData(batches) },
        this.timeoutMs + 500,
      );
    } catch (error) {
      const translated = translateError(error);
      for (const batch of batches) failAll(batch.records, translated);
      // the connection to it may be gone because the broker is: what is known of the topics is no longer to be trusted
      void this.cluster.refresh(batches.map(({ topic }) => topic)).catch(() => {});
      return;
    }
    for (const batch of batches) await this.settle(batch, partitionReply(reply, batch));
  }

  private async settle(
    { topic, partition, records }: Batch,
    reply: PartitionReply | undefined,
  ): Promise<void> {
    if (reply?.errorCode === OK) {
      const appendTime = reply.logAppendTime === '-1' ? undefined : Number(reply.logAppendTime);
      const base = Number(reply.baseOffset);
      for (const [i, record] of records.entries()) record.succeed(base + i, appendTime);
      return;
    }
    const type = reply === undefined ? 'UNKNOWN_TOPIC_OR_PARTITION' : errorType(reply.errorCode);
    if (STALE.has(type) && records.every((record) => record.misses === 0)) {
      for (const record of records) record.misses++;
      await this.reroute(records);
    } else if (RECORD_AT_FAULT.has(type) && records.length > 1) {
      // halves, so that only the records at fault are refused, whoever sent the others
      const middle = records.length >> 1;
      this.queue.addFirst(records.slice(middle));
      this.queue.addFirst(records.slice(0, middle));
    } else {
      failAll(records, kafkaRefusal(type, `topic ${topic}, partition ${partition}`));
    }
  }
}

function failAll(records: readonly Outgoing[], error: Error): void {
  for (const record of records) record.fail(error);
}

function topicData(batches: readonly Batch[]) {
  const topics = new Map<string, { partition: number; messages: Outgoing['message'][] }[]>();
  for (const { topic, partition, records } of batches) {
    const partitions = topics.get(topic) ?? [];
    if (partitions.length === 0) topics.set(topic, partitions);
    partitions.push({ partition, messages: records.map(({ message }) => message) });
  }
  return [...topics].map(([topic, partitions]) => ({ topic, partitions }));
}

function partitionReply(reply: ProduceReply, { topic, partition }: Batch): PartitionReply | undefined {
  return reply.topics
    .find(({ topicName }) => topicName === topic)
    ?.partitions.find((one) => one.partition === partition);
}
