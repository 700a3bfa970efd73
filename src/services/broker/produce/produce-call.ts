import type { OwnCall } from '../kafka/kafka-connection.js';
import { WireReader, WireWriter } from '../kafka/wire.js';

/** Batches of one topic, by partition. */
export interface TopicBatches {
  readonly topic: string;
  readonly partitions: readonly { readonly partition: number; readonly batch: Buffer }[];
}

export interface ProducedPartition {
  readonly topic: string;
  readonly partition: number;
  readonly errorCode: number;
  readonly baseOffset: number;
  /** ms; -1 where the topic keeps the producer's times. */
  readonly appendTime: number;
}

/** Of Kafka 2.1 and newer. */
const VERSION = 7;
/** acks from all replicas that are in sync */
const ALL_IN_SYNC = -1;

/** @param timeoutMs how long the broker may wait for its replicas */
export function produceCall(
  topics: readonly TopicBatches[],
  timeoutMs: number,
): OwnCall<ProducedPartition[]> {
  return { api: 'Produce', version: VERSION, encode: () => encode(topics, timeoutMs), decode };
}

function encode(topics: readonly TopicBatches[], timeoutMs: number): Buffer {
  const writer = new WireWriter().string(null).int16(ALL_IN_SYNC).int32(timeoutMs);
  writer.array(topics, ({ topic, partitions }) => {
    writer.string(topic).array(partitions, ({ partition, batch }) => writer.int32(partition).bytes(batch));
  });
  return writer.finish();
}

function decode(payload: Buffer): ProducedPartition[] {
  const reader = new WireReader(payload);
  const topics = reader.array(() => {
    const topic = reader.string();
    return reader.array(() => {
      const produced = {
        topic,
        partition: reader.int32(),
        errorCode: reader.int16(),
        baseOffset: reader.int64(),
        appendTime: reader.int64(),
      };
      reader.int64(); // start of the log
      return produced;
    });
  });
  return topics.flat();
}
