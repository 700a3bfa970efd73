import { ByteSink } from './byte-sink.js';

const MAGIC = 0x184d2204;
const BLOCK_CHECKSUM = 0x10;
const CONTENT_SIZE = 0x08;
const DICTIONARY = 0x01;
const UNCOMPRESSED = 0x80000000;

/** Sequences, or blocks, between two places to rest. */
const STEP = 2_000;

/**
 * Unpacks an LZ4 frame; Kafka has checked the batch, so the frame's own checksums are passed over.
 * https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md
 * @throws for anything else, and beyond `limit` bytes
 */
export function* lz4Frame(packed: Buffer, limit: number): Generator<void, Buffer> {
  if (packed.readUInt32LE(0) !== MAGIC) throw new Error('no LZ4 frame');
  const flags = packed.readUInt8(4);
  if ((flags & DICTIONARY) !== 0) throw new Error('an LZ4 frame with a dictionary');
  const sink = new ByteSink(Math.min(limit, packed.length * 4), limit);
  let at = 7 + ((flags & CONTENT_SIZE) === 0 ? 0 : 8);
  let blocks = 1;
  for (let size = packed.readUInt32LE(at); size !== 0; size = packed.readUInt32LE(at), blocks++) {
    const start = at + 4;
    const end = start + (size % UNCOMPRESSED);
    if (size < UNCOMPRESSED) yield* unpackBlock(packed.subarray(start, end), sink);
    else yield* literal(sink, packed, start, end - start);
    at = end + ((flags & BLOCK_CHECKSUM) === 0 ? 0 : 4);
    if (blocks % STEP === 0) yield;
  }
  return sink.written;
}

function* literal(sink: ByteSink, packed: Buffer, from: number, count: number): Generator<void, void> {
  if (!sink.fits(count)) yield* sink.grow(count);
  sink.literal(packed, from, count);
}

/** https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md */
function* unpackBlock(packed: Buffer, sink: ByteSink): Generator<void, void> {
  let at = 0;
  for (let sequences = 1; at < packed.length; sequences++) {
    const token = packed[at++] as number;
    let literals = token >> 4;
    // a length of 15 goes on in further bytes up to one below 255
    if (literals === 15) for (let byte = 255; byte === 255; literals += byte) byte = packed.readUInt8(at++);
    if (sink.fits(literals)) sink.literal(packed, at, literals);
    else yield* literal(sink, packed, at, literals);
    at += literals;
    // the last sequence has literals only
    if (at >= packed.length) return;
    const distance = packed.readUInt8(at) | (packed.readUInt8(at + 1) << 8);
    at += 2;
    let matched = (token & 15) + 4;
    if ((token & 15) === 15)
      for (let byte = 255; byte === 255; matched += byte) byte = packed.readUInt8(at++);
    if (!sink.fits(matched)) yield* sink.grow(matched);
    sink.repeat(distance, matched);
    if (sequences % STEP === 0) yield;
  }
}
