import { ByteSink } from './byte-sink.js';

const MAGIC = 0x184d2204;
const BLOCK_CHECKSUM = 0x10;
const CONTENT_SIZE = 0x08;
const DICTIONARY = 0x01;
const UNCOMPRESSED = 0x80000000;

/**
 * Unpacks an LZ4 frame; Kafka has checked the batch, so the frame's own checksums are passed over.
 * https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md
 * @throws for anything else, and beyond `limit` bytes
 */
export function lz4Frame(packed: Buffer, limit: number): Buffer {
  if (packed.readUInt32LE(0) !== MAGIC) throw new Error('no LZ4 frame');
  const flags = packed.readUInt8(4);
  if ((flags & DICTIONARY) !== 0) throw new Error('an LZ4 frame with a dictionary');
  const sink = new ByteSink(Math.min(limit, packed.length * 4), limit);
  let at = 7 + ((flags & CONTENT_SIZE) === 0 ? 0 : 8);
  for (let size = packed.readUInt32LE(at); size !== 0; size = packed.readUInt32LE(at)) {
    const start = at + 4;
    const length = size % UNCOMPRESSED;
    if (size >= UNCOMPRESSED) sink.literal(packed, start, length);
    else block(packed.subarray(start, start + length), sink);
    at = start + length + ((flags & BLOCK_CHECKSUM) === 0 ? 0 : 4);
  }
  return sink.written;
}

/** https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md */
function block(packed: Buffer, sink: ByteSink): void {
  let at = 0;
  /** A length of 15 goes on in further bytes up to one below 255. */
  const extended = (short: number): number => {
    if (short < 15) return short;
    let length = short;
    for (;;) {
      const byte = packed.readUInt8(at++);
      length += byte;
      if (byte < 255) return length;
    }
  };
  while (at < packed.length) {
    const token = packed.readUInt8(at++);
    const literals = extended(token >> 4);
    sink.literal(packed, at, literals);
    at += literals;
    // the last sequence has literals only
    if (at >= packed.length) return;
    const distance = packed.readUInt16LE(at);
    at += 2;
    sink.repeat(distance, extended(token & 15) + 4);
  }
}
