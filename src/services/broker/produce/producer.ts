import type { HttpError } from '../../../http/errors.js';
import type { LightWork } from '../../../lib/light-work.js';
import { sliced } from '../../../lib/slices.js';
import type { ClusterCounters } from '../cluster-counters.js';
import { kafkaRefusal, translateError } from '../errors.js';
import { createPartitioner } from '../kafka/client.js';
import type { Cluster } from '../kafka/cluster.js';
import { partitionKey, unknownPartition } from '../kafka/partitions.js';
import type { Topic } from '../kafka/topics.js';
import { LEADER_PAUSE_MS, pause } from '../kafka/waits.js';
import type { Compression, RecordToWrite } from '../records/record-encoder.js';
import type { Metadata, RecordInput } from '../schemas.js';
import { BrokerSender, failAll, RECORD_OVERHEAD } from './broker-sender.js';
import { type Asker, PendingProduce, PendingRecord } from './pending-produce.js';
import type { Outgoing } from './produce-queue.js';

/** So many records of a request are light work. */
const FEW = 10;

/** Nothing was sent yet. @throws HttpError */
function failedBefore(thrown: unknown): never {
  const error = translateError(thrown);
  error.hasDoneNothing = true;
  throw error;
}

/** Writes records, acknowledged by all replicas in sync; what concurrent requests write goes out together. */
export class Producer {
  private readonly senders = new Map<number, BrokerSender>();
  private readonly choosePartition = createPartitioner();
  /** Records of partitions whose leader is looked for; what comes for them meanwhile waits behind. */
  private readonly leaderless = new Map<string, Outgoing[]>();

  /** @param timeoutMs how long a broker may wait for its replicas, and leaders are looked for */
  constructor(
    private readonly cluster: Cluster,
    private readonly timeoutMs: number,
    private readonly compression: Compression,
    private readonly counters: ClusterCounters,
    private readonly now: () => number,
    private readonly light: LightWork,
  ) {}

  /**
   * Resolves, in the order of `inputs`, to where each record was written. Topics and partitions are checked first, so
   * a wrong one means that nothing is written.
   * @throws HttpError the first failure; its message says how many of the records were written all the same
   */
  async produce(inputs: readonly RecordInput[], asker: Asker): Promise<Metadata[]> {
    if (inputs.length <= FEW) this.light.came(performance.now());
    const topics = await this.topicsFor(inputs).catch(failedBefore);
    const pending = new PendingProduce(inputs.length, asker, performance.now() + this.timeoutMs);
    const sending = sliced(this.sendAll(inputs, topics, pending));
    if (sending instanceof Promise) await sending;
    return pending.done;
  }

  /** In their order; what another request sends meanwhile may come between. */
  private *sendAll(
    inputs: readonly RecordInput[],
    topics: ReadonlyMap<string, Topic>,
    pending: PendingProduce,
  ): Generator<void, void> {
    const now = this.now();
    for (let index = 0; index < inputs.length; index++) {
      const { topic: name, key, value, headers, timestamp, partition } = inputs[index] as RecordInput;
      const topic = topics.get(name) as Topic;
      const chosen = partition ?? this.choosePartition(name, key ?? undefined, topic.partitions);
      const record = { key: key ?? null, value, timestamp: timestamp ?? now, headers: headers ?? NO_HEADERS };
      this.send(
        new PendingRecord(pending, index, name, chosen, record, sizeOf(record)),
        leaderOf(topic, chosen),
      );
      if (index % STEP === STEP - 1) yield;
    }
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

  private send(record: Outgoing, leader: number): void {
    const waiting = this.leaderless.get(partitionKey(record));
    if (waiting === undefined) this.senderFor(leader).add(record);
    else waiting.push(record);
  }

  private senderFor(node: number): BrokerSender {
    let sender = this.senders.get(node);
    if (sender === undefined) {
      sender = new BrokerSender(
        node,
        this.cluster,
        this.timeoutMs,
        this.compression,
        this.counters,
        (records) => void this.reroute(records),
      );
      this.senders.set(node, sender);
    }
    return sender;
  }

  /** Asks again who leads the partition of `records`; not at once when that was of no use before. */
  private async reroute(records: Outgoing[]): Promise<void> {
    const [first] = records;
    if (first === undefined) return;
    const key = partitionKey(first);
    const waiting = this.leaderless.get(key);
    if (waiting !== undefined) return void waiting.push(...records);
    this.leaderless.set(key, records);
    if (first.misses > 1) await pause(LEADER_PAUSE_MS);
    const topics = await this.cluster.refresh([first.topic]).catch((error: unknown) => error as Error);
    this.leaderless.delete(key);
    if (topics instanceof Error) return this.fail(records, topics);
    const topic = topics.get(first.topic);
    const leader = topic?.partitions[first.partition]?.leader ?? -1;
    if (leader < 0) return this.fail(records, refusal(first, topic));
    for (const record of records) this.senderFor(leader).add(record);
  }

  private fail(records: readonly Outgoing[], error: Error): void {
    this.counters.unproduced += records.length;
    failAll(records, error);
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

/** Records between two places to rest. */
const STEP = 100;

const NO_HEADERS: RecordToWrite['headers'] = [];

/** At most, for the limits; Kafka's encoding is a little tighter. */
function sizeOf({ key, value, headers }: RecordToWrite): number {
  let bytes = RECORD_OVERHEAD + Buffer.byteLength(value ?? '') + Buffer.byteLength(key ?? '');
  for (const header of headers) {
    bytes += RECORD_OVERHEAD + Buffer.byteLength(header.key) + Buffer.byteLength(header.value);
  }
  return bytes;
}
