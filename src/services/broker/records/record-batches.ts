import { HttpError } from '../../../http/errors.js';
import { ByteReader, readInt64 } from './byte-reader.js';
import type { Unpacking } from './decompress.js';
import { type ByteSource, byteSource } from './json-bytes.js';

// Read here and not by kafkajs: its decoder makes a dozen objects and Long arithmetic of every record, and gives
// headers as an object. Format: https://kafka.apache.org/documentation/#recordbatch

/** A producer's transaction that was given up: what it wrote from `firstOffset` on is not for readers. */
export interface AbortedTransaction {
  readonly producerId: bigint;
  readonly firstOffset: number;
}

/** Records that can be read, not looked at yet. */
export interface RecordBatch {
  readonly baseOffset: number;
  readonly baseTimestamp: number;
  /** Where the topic keeps the broker's time, ms. */
  readonly appendTime: number | undefined;
  readonly count: number;
  /** Its records are in there from `start` to `end`: batches that are not compressed share what the broker sent. */
  readonly source: ByteSource;
  readonly start: number;
  readonly end: number;
}

export interface ReadableBatches {
  readonly batches: RecordBatch[];
  /** Offset behind everything that was looked at, also what is not for readers; `undefined` when that was nothing. */
  readonly next: number | undefined;
}

const HEAD = 61;
const MAGIC = 2;
const CODEC_MASK = 0x07;
const APPEND_TIME = 0x08;
const TRANSACTIONAL = 0x10;
const CONTROL = 0x20;
const ABORT = 0;

/** What one look at logs may unpack. */
export interface UnpackBudget {
  readonly unpacking: Unpacking;
  /** Bytes; when none are left, further compressed batches wait for the next look. */
  left: number;
}

/**
 * The batches of one partition's part of a Fetch reply, which may end in the middle of one.
 * @throws HttpError 502 for a codec that cannot be read, or the format before Kafka 0.11
 */
export async function readableBatches(
  records: Buffer,
  aborted: readonly AbortedTransaction[],
  budget: UnpackBudget,
): Promise<ReadableBatches> {
  const batches: RecordBatch[] = [];
  const filter = new TransactionFilter(aborted);
  const source = byteSource(records);
  let next: number | undefined;
  for (let at = 0; records.length - at >= HEAD; ) {
    const end = at + 12 + records.readInt32BE(at + 8);
    if (end > records.length) break;
    const batch = records.subarray(at, end);
    const start = at + HEAD;
    at = end;
    if (batch.readInt8(16) !== MAGIC)
      throw new HttpError('backend_error', 'The records are in the format that Kafka had before 0.11.');
    const baseOffset = readInt64(batch, 0);
    const attributes = batch.readInt16BE(21);
    const codec = attributes & CODEC_MASK;
    if (codec !== 0 && budget.left <= 0) break;
    const last = baseOffset + batch.readInt32BE(23);
    let place = { source, start, end };
    const isHidden = filter.hides(batch, last);
    if (!isHidden && codec !== 0) {
      const unpacking = unpacked(codec, batch.subarray(HEAD), budget, `offsets ${baseOffset} to ${last}`);
      // what lies before it can be read, and the next look begins here
      const bytes = await (next === undefined ? unpacking : unpacking.catch(() => undefined));
      if (bytes === undefined) break;
      place = { source: byteSource(bytes), start: 0, end: bytes.length };
    }
    next = last + 1;
    if (isHidden) continue;
    batches.push({
      baseOffset,
      baseTimestamp: readInt64(batch, 27),
      appendTime: (attributes & APPEND_TIME) === 0 ? undefined : readInt64(batch, 35),
      count: batch.readInt32BE(57),
      ...place,
    });
  }
  return { batches, next };
}

/** @param about the records, for the error */
async function unpacked(codec: number, packed: Buffer, budget: UnpackBudget, about: string): Promise<Buffer> {
  const bytes = await budget.unpacking.unpack(codec, packed, about);
  budget.left -= bytes.length;
  return bytes;
}

/** Tells which batches are not for readers of committed records. */
class TransactionFilter {
  private readonly begun: AbortedTransaction[];
  private readonly aborting = new Set<bigint>();

  constructor(aborted: readonly AbortedTransaction[]) {
    this.begun = [...aborted].sort((a, b) => a.firstOffset - b.firstOffset);
  }

  hides(batch: Buffer, lastOffset: number): boolean {
    const attributes = batch.readInt16BE(21);
    if (this.begun.length > 0 || this.aborting.size > 0) {
      for (
        let [first] = this.begun;
        first !== undefined && first.firstOffset <= lastOffset;
        [first] = this.begun
      ) {
        this.aborting.add(first.producerId);
        this.begun.shift();
      }
    }
    if ((attributes & CONTROL) !== 0) {
      if (endsInAbort(batch)) this.aborting.delete(batch.readBigInt64BE(43));
      return true;
    }
    return (attributes & TRANSACTIONAL) !== 0 && this.aborting.has(batch.readBigInt64BE(43));
  }
}

/** A control record's key is a version and a kind, two bytes each, behind four lengths and deltas of a byte or so. */
function endsInAbort(batch: Buffer): boolean {
  const reader = new ByteReader(byteSource(batch), HEAD);
  reader.varint();
  reader.skip(1);
  reader.varint();
  reader.varint();
  reader.varint();
  return batch.readInt16BE(reader.at + 2) === ABORT;
}
