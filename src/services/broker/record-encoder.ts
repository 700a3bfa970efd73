import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import { crc32c } from './crc32c.js';

// Kafka's record batch (magic 2) is written here and not by kafkajs: its encoder makes several objects and buffers a
// record, and takes headers as an object, which loses their order.
// Format: https://kafka.apache.org/documentation/#recordbatch

export interface RecordHeader {
  readonly key: string;
  readonly value: string;
}

export interface RecordToWrite {
  readonly key: string | null;
  /** Bytes are stored as they are. */
  readonly value: string | Buffer;
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

type Compress = (bytes: Uint8Array) => Promise<Buffer>;

/** `undefined` where this Node has no such codec: zstd came with 22.15. */
export function compressor(compression: Exclude<Compression, 'none'>): Compress | undefined {
  if (compression === 'gzip') return promisify(zlib.gzip) as Compress;
  const { zstdCompress } = zlib as unknown as { zstdCompress?: typeof zlib.gzip };
  return zstdCompress === undefined ? undefined : (promisify(zstdCompress) as Compress);
}

/** One batch of at least one record, as a broker takes it. */
export async function encodeRecordBatch(
  records: readonly RecordToWrite[],
  compression: Compression,
): Promise<Buffer> {
  const base = records[0]?.timestamp ?? 0;
  const sizes = records.map((record, i) => sizeOf(record, i, base));
  const total = sizes.reduce((sum, size) => sum + size + varintSize(size), 0);
  const batch = Buffer.allocUnsafe(HEAD + total);
  let at = HEAD;
  for (const [i, record] of records.entries())
    at = writeRecord(batch, at, record, i, base, sizes[i] as number);
  if (compression === 'none') return sealed(batch, records, base, 0);
  const packed = await compressor(compression)?.(batch.subarray(HEAD));
  if (packed === undefined) throw new Error(`this Node cannot write ${compression}`);
  return sealed(Buffer.concat([batch.subarray(0, HEAD), packed]), records, base, CODES[compression]);
}

function sealed(batch: Buffer, records: readonly RecordToWrite[], base: number, attributes: number): Buffer {
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
  batch.writeUInt32BE(crc32c(batch.subarray(ATTRIBUTES_AT)), CRC_AT);
  return batch;
}

/** Bytes of the record behind its own length. */
function sizeOf({ key, value, timestamp, headers }: RecordToWrite, index: number, base: number): number {
  let size = 1 + varintSize(timestamp - base) + varintSize(index);
  size += key === null ? 1 : sizeWithLength(Buffer.byteLength(key));
  size += sizeWithLength(Buffer.byteLength(value));
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
  at = key === null ? writeVarint(target, at, -1) : writeText(target, at, key);
  at = typeof value === 'string' ? writeText(target, at, value) : writeBytes(target, at, value);
  at = writeVarint(target, at, headers.length);
  for (const header of headers) at = writeText(target, writeText(target, at, header.key), header.value);
  return at;
}

function writeText(target: Buffer, start: number, text: string): number {
  const at = writeVarint(target, start, Buffer.byteLength(text));
  return at + target.write(text, at, 'utf8');
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
