import { ByteSink } from './byte-sink.js';

/** Java's Snappy puts blocks behind this mark and two versions; others write one block alone. */
const XERIAL = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0]);
const XERIAL_HEAD = 16;

/** Unpacks Snappy, with or without Java's frame. @throws for anything else, and beyond `limit` bytes */
export function snappy(packed: Buffer, limit: number): Buffer {
  if (!packed.subarray(0, XERIAL.length).equals(XERIAL)) return block(packed, limit);
  const blocks: Buffer[] = [];
  let total = 0;
  for (let at = XERIAL_HEAD; at < packed.length; ) {
    const size = packed.readUInt32BE(at);
    const unpacked = block(packed.subarray(at + 4, at + 4 + size), limit - total);
    blocks.push(unpacked);
    total += unpacked.length;
    at += 4 + size;
  }
  return Buffer.concat(blocks, total);
}

/** https://github.com/google/snappy/blob/main/format_description.txt */
function block(packed: Buffer, limit: number): Buffer {
  let at = 0;
  let length = 0;
  for (let factor = 1; ; factor *= 128) {
    const byte = byteAt(packed, at++);
    length += (byte & 127) * factor;
    if (byte < 128) break;
  }
  const sink = new ByteSink(length, limit);
  while (at < packed.length) {
    const tag = byteAt(packed, at++);
    const kind = tag & 3;
    if (kind === 0) {
      const [count, next] = literalLength(packed, tag >> 2, at);
      sink.literal(packed, next, count);
      at = next + count;
    } else if (kind === 1) {
      sink.repeat(((tag >> 5) << 8) | byteAt(packed, at), ((tag >> 2) & 7) + 4);
      at += 1;
    } else {
      const width = kind === 2 ? 2 : 4;
      sink.repeat(packed.readUIntLE(at, width), (tag >> 2) + 1);
      at += width;
    }
  }
  if (sink.written.length !== length) throw new Error('another length than announced');
  return sink.written;
}

/** Lengths above 60 stand in 1 to 4 bytes behind the tag. */
function literalLength(packed: Buffer, short: number, at: number): [number, number] {
  if (short < 60) return [short + 1, at];
  const width = short - 59;
  return [packed.readUIntLE(at, width) + 1, at + width];
}

function byteAt(packed: Buffer, at: number): number {
  const byte = packed[at];
  if (byte === undefined) throw new Error('the packed bytes end too early');
  return byte;
}
