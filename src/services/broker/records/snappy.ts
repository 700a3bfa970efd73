import { ByteSink } from './byte-sink.js';

/** Java's Snappy puts blocks behind this mark and two versions; others write one block alone. */
const XERIAL = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0]);
const XERIAL_HEAD = 16;

/** Elements, or blocks, between two places to rest. */
const STEP = 2_000;
/** A block of more packed bytes is a place to rest; others hold little. */
const LARGE_BLOCK = 100;

interface Block {
  /** Where its elements begin and end among the packed bytes. */
  readonly start: number;
  readonly end: number;
  /** Bytes when it is unpacked. */
  readonly length: number;
}

/** Unpacks Snappy, with or without Java's frame. @throws for anything else, and beyond `limit` bytes */
export function* snappy(packed: Buffer, limit: number): Generator<void, Buffer> {
  const isFramed = packed.subarray(0, XERIAL.length).equals(XERIAL);
  const blocks = isFramed ? framedBlocks : soleBlock;
  let count = 0;
  let total = 0;
  for (const { length } of blocks(packed)) {
    total += length;
    if (++count % STEP === 0) yield;
  }
  const sink = new ByteSink(total, limit);
  for (const block of blocks(packed)) {
    yield* unpackBlock(packed, block, sink);
    if (block.end - block.start > LARGE_BLOCK || ++count % STEP === 0) yield;
  }
  return sink.written;
}

function* soleBlock(packed: Buffer): Generator<Block> {
  yield blockAt(packed, 0, packed.length);
}

function* framedBlocks(packed: Buffer): Generator<Block> {
  for (let at = XERIAL_HEAD; at < packed.length; ) {
    const start = at + 4;
    at = start + packed.readUInt32BE(at);
    yield blockAt(packed, start, at);
  }
}

function blockAt(packed: Buffer, begin: number, end: number): Block {
  let start = begin;
  let length = 0;
  for (let factor = 1; ; factor *= 128) {
    const byte = byteAt(packed, start++);
    length += (byte & 127) * factor;
    if (byte < 128) break;
  }
  return { start, end, length };
}

/** https://github.com/google/snappy/blob/main/format_description.txt */
function* unpackBlock(packed: Buffer, { start, end, length }: Block, sink: ByteSink): Generator<void, void> {
  const before = sink.length;
  for (let at = start, elements = 1; at < end; elements++) {
    const tag = byteAt(packed, at++);
    const kind = tag & 3;
    if (kind === 0) {
      const short = tag >> 2;
      // lengths above 60 stand in 1 to 4 bytes behind the tag
      const width = short < 60 ? 0 : short - 59;
      const count = (width === 0 ? short : packed.readUIntLE(at, width)) + 1;
      sink.literal(packed, at + width, count);
      at += width + count;
    } else if (kind === 1) {
      sink.repeat(((tag >> 5) << 8) | byteAt(packed, at), ((tag >> 2) & 7) + 4);
      at += 1;
    } else if (kind === 2) {
      sink.repeat(byteAt(packed, at) | (byteAt(packed, at + 1) << 8), (tag >> 2) + 1);
      at += 2;
    } else {
      sink.repeat(packed.readUInt32LE(at), (tag >> 2) + 1);
      at += 4;
    }
    if (elements % STEP === 0) yield;
  }
  if (sink.length - before !== length) throw new Error('another length than announced');
}

function byteAt(packed: Buffer, at: number): number {
  const byte = packed[at];
  if (byte === undefined) throw new Error('the packed bytes end too early');
  return byte;
}
