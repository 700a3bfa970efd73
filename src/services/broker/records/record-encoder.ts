import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import { sliced } from '../../../lib/slices.js';
import { Crc32c } from './crc32c.js';

// Kafka's record batch (magic 2) is written here and not by kafkajs: its encoder makes several objects and buffers a
// record, and takes headers as an object, which loses their order.
// Format: https://kafka.apache.org/documentation/#recordbatch

export interface RecordHeader {
  readonly key: string;
  readonly value: Text;
}

/** Text is stored as UTF-8, bytes as they are. */
export type Text = string | Buffer;

export interface RecordToWrite {
  readonly key: Text | null;
  /** `null`: a tombstone. */
  readonly value: Text | null;
  /** ms since 1970 */
  readonly timestamp: number;
  readonly headers: readonly RecordHeader[];
}

export const COMPRESSIONS = ['none', 'gzip', 'zstd'] as const;
export type Compression = (typeof COMPRESSIONS)[number];

const CODES: Readonly<Record<Compression, number>> = { none: 0, gzip: 1, zstd: 4 };
/** Bytes before the records. */
const HEAD = 61;
const CRC_AT = 17;
const ATTRIBUTES_AT = 21;
const MAGIC = 2;

/** Records, headers and 32 bytes of them between two places to rest: about 1 ms. */
const STEP = 4_000;
/** Larger ones, in bytes, are written in pieces. */
const LONG_RECORD = 64 * 1024;
/** What is written, or summed up, at once, in bytes or characters. */
const PIECE = 256 * 1024;

type Compress = (bytes: Uint8Array) => Promise<Buffer>;

/** `undefined` where this Node has no such codec: zstd came with 22.15. */
export function compressor(compression: Exclude<Compression, 'none'>): Compress | undefined {
  if (compression === 'gzip') return promisify(zlib.gzip) as Compress;
  const { zstdCompress } = zlib as unknown as { zstdCompress?: typeof zlib.gzip };
  return zstdCompress === undefined ? undefined : (promisify(zstdCompress) as Compress);
}

/** Batches of at least one record each, as a broker takes them. */
export async function encodeRecordBatches(
  batches: readonly (readonly RecordToWrite[])[],
  compression: Compression,
): Promise<Buffer[]> {
  const written = await sliced(writeBatches(batches));
  const packed = compression === 'none' ? written : await Promise.all(written.map(packerFor(compression)));
  await sliced(sealBatches(packed, batches, CODES[compression]));
  return packed;
}

/** Packs what follows the head. */
function packerFor(compression: Exclude<Compression, 'none'>): (batch: Buffer) => Promise<Buffer> {
  const compress = compressor(compression);
  if (compress === undefined) throw new Error(`this Node cannot write ${compression}`);
  return async (batch) => Buffer.concat([batch.subarray(0, HEAD), await compress(batch.subarray(HEAD))]);
}

function* writeBatches(batches: readonly (readonly RecordToWrite[])[]): Generator<void, Buffer[]> {
  const written: Buffer[] = [];
  for (const records of batches) written.push(yield* writeBatch(records));
  return written;
}

/** With room for its head. */
function* writeBatch(records: readonly RecordToWrite[]): Generator<void, Buffer> {
  const base = records[0]?.timestamp ?? 0;
  const sizes: number[] = [];
  let total = 0;
  let work = 0;
  for (let i = 0; i < records.length; i++) {
    const record = records[i] as RecordToWrite;
    const size = sizeOf(record, i, base);
    sizes.push(size);
    total += size + varintSize(size);
    work += 1 + record.headers.length;
    if (work < STEP) continue;
    work = 0;
    yield;
  }
  const batch = Buffer.allocUnsafe(HEAD + total);
  let at = HEAD;
  for (let i = 0; i < records.length; i++) {
    const record = records[i] as RecordToWrite;
    const size = sizes[i] as number;
    if (size > LONG_RECORD) yield* writeLong(batch, at, record, i, base, size);
    else writeRecord(batch, at, record, i, base, size);
    at += size + varintSize(size);
    work += 1 + (size >> 5);
    if (work < STEP) continue;
    work = 0;
    yield;
  }
  return batch;
}

function* sealBatches(
  batches: readonly Buffer[],
  records: readonly (readonly RecordToWrite[])[],
  attributes: number,
): Generator<void, void> {
  for (const [i, batch] of batches.entries())
    yield* sealBatch(batch, records[i] as readonly RecordToWrite[], attributes);
}

function* sealBatch(
  batch: Buffer,
  records: readonly RecordToWrite[],
  attributes: number,
): Generator<void, void> {
  const base = records[0]?.timestamp ?? 0;
  let latest = base;
  for (const { timestamp } of records) if (timestamp > latest) latest = timestamp;
  writeInt64(batch, 0, 0); // base offset: the broker's matter
  batch.writeInt32BE(batch.length - 12, 8);
  batch.writeInt32BE(-1, 12); // leader epoch: the broker's matter
  batch.writeInt8(MAGIC, 16);
  batch.writeInt16BE(attributes, ATTRIBUTES_AT);
  batch.writeInt32BE(records.length - 1, 23);
  writeInt64(batch, 27, base);
  writeInt64(batch, 35, latest);
  batch.fill(0xff, 43, 57); // no producer id, epoch and sequence
  batch.writeInt32BE(records.length, 57);
  const crc = new Crc32c();
  for (let at = ATTRIBUTES_AT; at < batch.length; at += PIECE) {
    crc.add(batch.subarray(at, at + PIECE));
    yield;
  }
  batch.writeUInt32BE(crc.value, CRC_AT);
}

/** Bytes of the record behind its own length. */
function sizeOf({ key, value, timestamp, headers }: RecordToWrite, index: number, base: number): number {
  let size = 1 + varintSize(timestamp - base) + varintSize(index);
  size += key === null ? 1 : sizeWithLength(Buffer.byteLength(key));
  size += value === null ? 1 : sizeWithLength(Buffer.byteLength(value));
  size += varintSize(headers.length);
  for (const header of headers)
    size += sizeWithLength(Buffer.byteLength(header.key)) + sizeWithLength(Buffer.byteLength(header.value));
  return size;
}

function writeRecord(
  target: Buffer,
  start: number,
  { key, value, timestamp, headers }: RecordToWrite,
  index: number,
  base: number,
  size: number,
): number {
  let at = writeVarint(target, start, size);
  target[at++] = 0; // attributes: none exist
  at = writeVarint(target, at, timestamp - base);
  at = writeVarint(target, at, index);
  at = writeField(target, at, key);
  at = writeField(target, at, value);
  at = writeVarint(target, at, headers.length);
  for (const header of headers) at = writeField(target, writeText(target, at, header.key), header.value);
  return at;
}

/** The same in slices. */
function* writeLong(
  target: Buffer,
  start: number,
  { key, value, timestamp, headers }: RecordToWrite,
  index: number,
  base: number,
  size: number,
): Generator<void, void> {
  let at = writeVarint(target, start, size);
  target[at++] = 0;
  at = writeVarint(target, at, timestamp - base);
  at = writeVarint(target, at, index);
  at = yield* writeLongField(target, at, key);
  at = yield* writeLongField(target, at, value);
  at = writeVarint(target, at, headers.length);
  for (const [i, header] of headers.entries()) {
    at = yield* writeLongText(target, at, header.key);
    at = yield* writeLongField(target, at, header.value);
    if (i % STEP === STEP - 1) yield;
  }
}

function writeField(target: Buffer, start: number, field: Text | null): number {
  if (field === null) return writeVarint(target, start, -1);
  return typeof field === 'string' ? writeText(target, start, field) : writeBytes(target, start, field);
}

function* writeLongField(target: Buffer, start: number, field: Text | null): Generator<void, number> {
  return typeof field === 'string'
    ? yield* writeLongText(target, start, field)
    : writeField(target, start, field);
}

function writeText(target: Buffer, start: number, text: string): number {
  const at = writeVarint(target, start, Buffer.byteLength(text));
  return at + target.write(text, at, 'utf8');
}

function* writeLongText(target: Buffer, start: number, text: string): Generator<void, number> {
  if (text.length <= PIECE) return writeText(target, start, text);
  let at = writeVarint(target, start, Buffer.byteLength(text));
  for (let from = 0; from < text.length; ) {
    const cut = from + PIECE;
    // not between the halves of a surrogate pair
    const end = isHighSurrogate(text.charCodeAt(cut - 1)) ? cut - 1 : cut;
    at += target.write(text.slice(from, end), at, 'utf8');
    from = end;
    yield;
  }
  return at;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function writeBytes(target: Buffer, start: number, bytes: Buffer): number {
  const at = writeVarint(target, start, bytes.length);
  return at + bytes.copy(target, at);
}

function sizeWithLength(length: number): number {
  return varintSize(length) + length;
}

/** Zigzag: small negative numbers are short too. */
function zigzag(value: number): number {
  return value >= 0 ? value * 2 : value * -2 - 1;
}

function varintSize(value: number): number {
  let rest = zigzag(value);
  let size = 1;
  for (; rest >= 128; size++) rest = Math.floor(rest / 128);
  return size;
}

function writeVarint(target: Buffer, start: number, value: number): number {
  let rest = zigzag(value);
  let at = start;
  // beyond 32 bits the operators for bits would cut
  for (; rest >= 128; rest = Math.floor(rest / 128)) target[at++] = (rest % 128) + 128;
  target[at++] = rest;
  return at;
}

function writeInt64(target: Buffer, at: number, value: number): void {
  target.writeInt32BE(Math.floor(value / 2 ** 32), at);
  target.writeUInt32BE(value % 2 ** 32, at + 4);
}
