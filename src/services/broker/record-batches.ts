import { HttpError } from '../../http/errors.js';
import { decompress } from './decompress.js';
import type { Message } from './schemas.js';

// Read here and not by kafkajs: its decoder makes a dozen objects and Long arithmetic of every record, and gives
// headers as an object. Format: https://kafka.apache.org/documentation/#recordbatch

/** A producer's transaction that was given up: what it wrote from `firstOffset` on is not for readers. */
export interface AbortedTransaction {
  readonly producerId: bigint;
  readonly firstOffset: number;
}

/** Records that can be read, not looked at yet. */
interface RecordBatch {
  readonly baseOffset: number;
  readonly baseTimestamp: number;
  /** Where the topic keeps the broker's time, ms. */
  readonly appendTime: number | undefined;
  readonly bytes: Buffer;
  count: number;
  at: number;
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

/**
 * The batches of one partition's part of a Fetch reply, which may end in the middle of one.
 * @throws HttpError 502 for a codec that cannot be read, or the format before Kafka 0.11
 */
export async function readableBatches(
  records: Buffer,
  aborted: readonly AbortedTransaction[],
): Promise<ReadableBatches> {
  const batches: RecordBatch[] = [];
  const filter = new TransactionFilter(aborted);
  let next: number | undefined;
  for (let at = 0; records.length - at >= HEAD; ) {
    const end = at + 12 + records.readInt32BE(at + 8);
    if (end > records.length) break;
    const batch = records.subarray(at, end);
    at = end;
    if (batch.readInt8(16) !== MAGIC)
      throw new HttpError('backend_error', 'The records are in the format that Kafka had before 0.11.');
    const baseOffset = readInt64(batch, 0);
    next = baseOffset + batch.readInt32BE(23) + 1;
    if (filter.hides(batch, next - 1)) continue;
    const attributes = batch.readInt16BE(21);
    const codec = attributes & CODEC_MASK;
    const packed = batch.subarray(HEAD);
    batches.push({
      baseOffset,
      baseTimestamp: readInt64(batch, 27),
      appendTime: (attributes & APPEND_TIME) === 0 ? undefined : readInt64(batch, 35),
      bytes: codec === 0 ? packed : await decompress(codec, packed),
      count: batch.readInt32BE(57),
      at: 0,
    });
  }
  return { batches, next };
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
  const reader = new ByteReader(batch, HEAD);
  reader.varint();
  reader.skip(1);
  reader.varint();
  reader.varint();
  reader.varint();
  return batch.readInt16BE(reader.at + 2) === ABORT;
}

/** Records of one partition in their order, each made when it is asked for: what waits costs its bytes only. */
export class RecordCursor {
  constructor(
    private readonly topic: string,
    private readonly partition: number,
    private readonly batches: RecordBatch[],
    /** Batches begin before it where they were compressed as one. */
    private readonly fromOffset: number,
  ) {}

  /** Of records that are left. */
  get bytes(): number {
    return this.batches.reduce((sum, { bytes, at }) => sum + bytes.length - at, 0);
  }

  /** The next record and its bytes; `undefined` at the end. */
  next(): { readonly message: Message; readonly bytes: number } | undefined {
    for (let [batch] = this.batches; batch !== undefined; [batch] = this.batches) {
      while (batch.count > 0) {
        batch.count -= 1;
        const reader = new ByteReader(batch.bytes, batch.at);
        const size = reader.varint();
        batch.at = reader.at + size;
        const message = this.read(reader, batch);
        if (message.offset >= this.fromOffset) return { message, bytes: size };
      }
      this.batches.shift();
    }
    return undefined;
  }

  private read(reader: ByteReader, { baseOffset, baseTimestamp, appendTime }: RecordBatch): Message {
    reader.skip(1);
    const timestamp = baseTimestamp + reader.varint();
    const offset = baseOffset + reader.varint();
    const key = reader.text();
    const value = reader.text();
    const headers: Message['headers'] = [];
    for (let left = reader.varint(); left > 0; left--)
      headers.push({ key: reader.text(), value: reader.text() });
    return {
      topic: this.topic,
      partition: this.partition,
      offset,
      timestamp: appendTime ?? timestamp,
      key,
      value,
      headers,
    };
  }
}

class ByteReader {
  constructor(
    private readonly bytes: Buffer,
    public at: number,
  ) {}

  skip(count: number): void {
    this.at += count;
  }

  /** Up to 2^53; offsets and times are far below. */
  varint(): number {
    const { bytes } = this;
    let byte = bytes[this.at++] as number;
    let raw = byte & 127;
    for (let factor = 128; byte >= 128; factor *= 128) {
      byte = bytes[this.at++] as number;
      raw += (byte & 127) * factor;
    }
    return raw % 2 === 0 ? raw / 2 : -(raw + 1) / 2;
  }

  /** Absent text is "", bytes that are not UTF-8 become U+FFFD. */
  text(): string {
    const length = this.varint();
    if (length <= 0) return '';
    const start = this.at;
    this.at += length;
    return this.bytes.toString('utf8', start, this.at);
  }
}

export function readInt64(bytes: Buffer, at: number): number {
  return bytes.readInt32BE(at) * 2 ** 32 + bytes.readUInt32BE(at + 4);
}
