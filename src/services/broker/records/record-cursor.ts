import { HttpError } from '../../../http/errors.js';
import { ByteReader } from './byte-reader.js';
import type { JsonConstant } from './json-bytes.js';
import { type MessagesJson, partitionConstant } from './messages-json.js';
import type { RecordBatch } from './record-batches.js';

/** Larger ones, in bytes, are written in slices. */
const LONG_RECORD = 16 * 1024;
/** Bytes between two places to rest: 1 ms. */
const STEP = 64 * 1024;
/** What a record takes beside its bytes, in time for as many. */
const OVERHEAD = 100;

/** Records of one partition in their order, each read when a reply takes it: what waits costs its bytes only. */
export class RecordCursor {
  /** Of records that are left. */
  bytes: number;
  private readonly prefix: JsonConstant;
  private index = 0;
  private reader: ByteReader | undefined;
  private left = 0;

  constructor(
    topic: string,
    partition: number,
    private readonly batches: readonly RecordBatch[],
    /** Offset of the next record, at least: batches begin before it where they were compressed as one. */
    public nextOffset: number,
  ) {
    this.prefix = partitionConstant(topic, partition);
    this.bytes = batches.reduce((sum, { start, end }) => sum + end - start, 0);
  }

  /** Writes what has room. @returns whether nothing is left. @throws HttpError 502 for a record that goes beyond its batch */
  *writeTo(json: MessagesJson): Generator<void, boolean> {
    for (; this.index < this.batches.length; this.index++) {
      const batch = this.batches[this.index] as RecordBatch;
      if (this.reader === undefined) {
        this.reader = new ByteReader(batch.source, batch.start);
        this.left = batch.count;
      }
      const before = this.reader.at;
      const isDone = yield* this.writeBatch(json, batch, this.reader);
      this.bytes -= this.reader.at - before;
      if (!isDone) return false;
      this.reader = undefined;
    }
    return true;
  }

  private *writeBatch(json: MessagesJson, batch: RecordBatch, reader: ByteReader): Generator<void, boolean> {
    const { prefix } = this;
    let work = 0;
    for (; this.left > 0; this.left--) {
      const begin = reader.at;
      const size = reader.varint();
      const end = reader.at + size;
      if (size <= 0 || end > batch.end)
        throw new HttpError('backend_error', 'A record goes beyond the end of its batch.');
      reader.skip(1);
      const timestamp = batch.baseTimestamp + reader.varint();
      const offset = batch.baseOffset + reader.varint();
      if (offset >= this.nextOffset) {
        if (!json.hasRoom(size)) {
          reader.at = begin;
          return false;
        }
        const time = batch.appendTime ?? timestamp;
        if (json.isBase64) yield* json.addBase64(prefix, offset, time, reader, size);
        else if (size <= LONG_RECORD) json.add(prefix, offset, time, reader, size);
        else yield* json.addLong(prefix, offset, time, reader, size);
        this.nextOffset = offset + 1;
      }
      reader.at = end;
      work += size + OVERHEAD;
      if (work < STEP) continue;
      work = 0;
      yield;
    }
    return true;
  }
}
