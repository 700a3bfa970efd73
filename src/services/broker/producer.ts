import { HttpError } from '../../http/errors.js';
import { BrokerSender, RECORD_OVERHEAD } from './broker-sender.js';
import { createPartitioner } from './client.js';
import type { Cluster } from './cluster.js';
import { kafkaRefusal } from './errors.js';
import { unknownPartition } from './partitions.js';
import type { Outgoing } from './produce-queue.js';
import type { Compression } from './record-encoder.js';
import type { Metadata, RecordInput } from './schemas.js';
import type { Topic } from './topics.js';

/** Writes records, acknowledged by all replicas in sync; what concurrent requests write goes out together. */
export class Producer {
  private readonly senders = new Map<number, BrokerSender>();
  private readonly choosePartition = createPartitioner();

  /** @param timeoutMs how long a broker may wait for its replicas */
  constructor(
    private readonly cluster: Cluster,
    private readonly timeoutMs: number,
    private readonly compression: Compression,
    private readonly now: () => number,
  ) {}

  /**
   * Resolves, in the order of `inputs`, to where each record was written. Topics and partitions are checked first, so
   * a wrong one means that nothing is written.
   * @throws HttpError the first failure; its message says how many of the records were written all the same
   */
  async produce(inputs: readonly RecordInput[], signal: AbortSignal): Promise<Metadata[]> {
    const topics = await this.topicsFor(inputs);
    const now = this.now();
    const outcomes = inputs.map((input) => {
      const topic = topics.get(input.topic) as Topic;
      const partition =
        input.partition ?? this.choosePartition(topic.name, input.key ?? undefined, topic.partitions);
      return this.enqueue(input, partition, leaderOf(topic, partition), input.timestamp ?? now, signal);
    });
    return allWritten(await Promise.allSettled(outcomes));
  }

  private async topicsFor(inputs: readonly RecordInput[]): Promise<Map<string, Topic>> {
    const names = [...new Set(inputs.map(({ topic }) => topic))];
    let topics = await this.cluster.existing(names);
    // partitions may have been added, and a leader elected, since the topics were last asked for
    if (firstUnfit(inputs, topics) !== undefined) topics = await this.cluster.refresh(names);
    const unfit = firstUnfit(inputs, topics);
    if (unfit !== undefined) throw unfit;
    return topics;
  }

  private enqueue(
    input: RecordInput,
    partition: number,
    leader: number,
    timestamp: number,
    signal: AbortSignal,
  ): Promise<Metadata> {
    const { topic, key, value, headers } = input;
    return new Promise((resolve, reject) => {
      this.senderFor(leader).add({
        topic,
        partition,
        record: { key: key ?? null, value, timestamp, headers: headers ?? [] },
        bytes: sizeOf(input),
        isAbandoned: () => {
          if (signal.aborted) reject(new HttpError('client_gone'));
          return signal.aborted;
        },
        succeed: (offset, appendTime) =>
          resolve({ topic, partition, offset, timestamp: appendTime ?? timestamp }),
        fail: reject,
        misses: 0,
      });
    });
  }

  private senderFor(node: number): BrokerSender {
    let sender = this.senders.get(node);
    if (sender === undefined) {
      sender = new BrokerSender(node, this.cluster, this.timeoutMs, this.compression, (records) =>
        this.reroute(records),
      );
      this.senders.set(node, sender);
    }
    return sender;
  }

  private async reroute(records: readonly Outgoing[]): Promise<void> {
    const names = [...new Set(records.map(({ topic }) => topic))];
    const topics = await this.cluster.refresh(names).catch((error: unknown) => error as Error);
    for (const record of records) {
      const topic = topics instanceof Error ? undefined : topics.get(record.topic);
      const leader = topic?.partitions[record.partition]?.leader ?? -1;
      if (leader >= 0) this.senderFor(leader).add(record);
      else if (topics instanceof Error) record.fail(topics);
      else record.fail(refusal(record, topic));
    }
  }
}

function refusal({ topic: name, partition }: Outgoing, topic: Topic | undefined): HttpError {
  const about = `topic ${name}, partition ${partition}`;
  const isThere = topic?.partitions[partition] !== undefined;
  return kafkaRefusal(isThere ? 'LEADER_NOT_AVAILABLE' : 'UNKNOWN_TOPIC_OR_PARTITION', about);
}

function leaderOf(topic: Topic, partition: number): number {
  return topic.partitions[partition]?.leader ?? -1;
}

/** kafkajs reports a record for a partition that does not exist as sent: the range is checked here. */
function firstUnfit(
  inputs: readonly RecordInput[],
  topics: ReadonlyMap<string, Topic>,
): HttpError | undefined {
  for (const { topic: name, partition } of inputs) {
    const topic = topics.get(name);
    const isMissing = typeof partition === 'number' && partition >= (topic?.partitions.length ?? 0);
    if (topic === undefined || isMissing)
      return unknownPartition({ topic: name, partition: partition ?? 0 }, topic);
    const isLed =
      typeof partition === 'number'
        ? leaderOf(topic, partition) >= 0
        : topic.partitions.some((p) => p.leader >= 0);
    if (!isLed) return kafkaRefusal('LEADER_NOT_AVAILABLE', `topic ${name}`);
  }
  return undefined;
}

function sizeOf({ key, value, headers }: RecordInput): number {
  let bytes = RECORD_OVERHEAD + Buffer.byteLength(value) + Buffer.byteLength(key ?? '');
  for (const header of headers ?? []) {
    bytes += RECORD_OVERHEAD + Buffer.byteLength(header.key) + Buffer.byteLength(header.value);
  }
  return bytes;
}

function allWritten(outcomes: readonly PromiseSettledResult<Metadata>[]): Metadata[] {
  const written = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  const failed = outcomes.findIndex((outcome) => outcome.status === 'rejected');
  if (failed < 0) return written;
  const reason = (outcomes[failed] as PromiseRejectedResult).reason as unknown;
  if (outcomes.length === 1 || !(reason instanceof HttpError)) throw reason;
  const told = `Record ${failed}: ${reason.message} ${written.length} of the ${outcomes.length} records were written.`;
  throw new HttpError(reason.code, told, { cause: reason.cause });
}
