import { groupBy } from '../../../lib/group-by.js';
import type { OwnCall } from '../kafka/kafka-connection.js';
import type { TopicPartition } from '../kafka/partitions.js';
import { WireReader, WireWriter } from '../kafka/wire.js';
import type { AbortedTransaction } from '../records/record-batches.js';

/** Where to read on in one partition. */
export interface Position extends TopicPartition {
  readonly offset: number;
}

export interface FetchedPartition extends TopicPartition {
  readonly errorCode: number;
  /** End of the log as a reader of committed records sees it. */
  readonly lastStableOffset: number;
  readonly aborted: readonly AbortedTransaction[];
  /** Record batches, the last of which may be cut. */
  readonly records: Buffer;
}

export interface FetchLimits {
  /** How long the broker waits for a record, in ms. */
  readonly maxWaitMs: number;
  /** Soft: one batch may be larger. */
  readonly maxBytes: number;
}

/** Of Kafka 2.3 and newer. */
const VERSION = 11;
const COMMITTED_ONLY = 1;

/** No partition may be there twice. */
export function fetchCall(positions: readonly Position[], limits: FetchLimits): OwnCall<FetchedPartition[]> {
  return { api: 'Fetch', version: VERSION, encode: () => encode(positions, limits), decode };
}

function encode(positions: readonly Position[], { maxWaitMs, maxBytes }: FetchLimits): Buffer {
  const writer = new WireWriter();
  // no replica; at least one byte; no session (id 0, epoch -1)
  writer.int32(-1).int32(maxWaitMs).int32(1).int32(maxBytes).int8(COMMITTED_ONLY).int32(0).int32(-1);
  writer.array([...groupBy(positions, ({ topic }) => topic)], ([topic, wanted]) => {
    writer.string(topic).array(wanted, ({ partition, offset }) => {
      // leader epoch and start of the log: unknown
      writer.int32(partition).int32(-1).int64(offset).int64(-1).int32(maxBytes);
    });
  });
  return writer
    .array([], () => {})
    .string('')
    .finish();
}

function decode(payload: Buffer): FetchedPartition[] {
  const reader = new WireReader(payload);
  reader.int32(); // throttle time
  reader.int16(); // error of the session, of which there is none
  reader.int32();
  const topics = reader.array(() => {
    const topic = reader.string();
    return reader.array(() => partitionOf(topic, reader));
  });
  return topics.flat();
}

function partitionOf(topic: string, reader: WireReader): FetchedPartition {
  const partition = reader.int32();
  const errorCode = reader.int16();
  reader.int64(); // high watermark
  const lastStableOffset = reader.int64();
  reader.int64(); // start of the log
  const aborted = reader.array(() => ({ producerId: reader.bigInt64(), firstOffset: reader.int64() }));
  reader.int32(); // preferred replica
  return { topic, partition, errorCode, lastStableOffset, aborted, records: reader.bytes() };
}
