import { types } from 'node:util';
import fc from 'fast-check';
import { wholly } from '../../../src/lib/slices.js';
import { lz4Frame } from '../../../src/services/broker/records/lz4.js';
import { snappy } from '../../../src/services/broker/records/snappy.js';

const MIB = 1024 * 1024;
const LIMIT = 32 * MIB;

/** What both formats are made of: bytes as they are, and repetitions of what came before. */
type Element = { readonly literal: Buffer } | { readonly distance: number; readonly count: number };

const literal = fc
  .oneof(
    fc.uint8Array({ minLength: 1, maxLength: 3 }),
    fc.uint8Array({ minLength: 30, maxLength: 70 }),
    fc.uint8Array({ minLength: 250, maxLength: 400 }),
  )
  .map((bytes) => ({ literal: Buffer.from(bytes) }));
const repetition = (longest: number) =>
  fc.record({
    distance: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.nat(70_000)),
    count: fc.oneof(fc.integer({ min: 4, max: 64 }), fc.integer({ min: 4, max: longest })),
  });
const elements = (longest: number) =>
  fc
    .array(fc.oneof(literal, repetition(longest)), { minLength: 1, maxLength: 40 })
    .map((list) => possible([{ literal: Buffer.from('begin') }, ...list]));

/** With distances that lie within what came before. */
function possible(wanted: readonly Element[]): Element[] {
  let length = 0;
  return wanted.map((element) => {
    const before = length;
    length += 'literal' in element ? element.literal.length : element.count;
    return 'literal' in element
      ? element
      : { ...element, distance: 1 + (element.distance % Math.min(before, 65_535)) };
  });
}

function unpacked(list: readonly Element[]): Buffer {
  const bytes: number[] = [];
  for (const element of list)
    if ('literal' in element) bytes.push(...element.literal);
    else for (let i = 0; i < element.count; i++) bytes.push(bytes[bytes.length - element.distance] as number);
  return Buffer.from(bytes);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

const uint16 = (value: number) => [value & 255, value >> 8];
const uint32 = (value: number) => [...uint16(value & 0xffff), ...uint16(value >>> 16)];

function snappyElement(element: Element): Buffer {
  if ('literal' in element) {
    const { length } = element.literal;
    const head =
      length <= 60 ? [(length - 1) << 2] : length <= 256 ? [240, length - 1] : [244, ...uint16(length - 1)];
    return Buffer.concat([Buffer.from(head), element.literal]);
  }
  const { distance, count } = element;
  if (count < 12 && distance < 2048)
    return Buffer.from([1 | ((count - 4) << 2) | ((distance >> 8) << 5), distance & 255]);
  if (count % 2 === 0) return Buffer.from([2 | ((count - 1) << 2), ...uint16(distance)]);
  return Buffer.from([3 | ((count - 1) << 2), ...uint32(distance)]);
}

function snappyBlock(list: readonly Element[]): Buffer {
  return Buffer.concat([varint(unpacked(list).length), ...list.map(snappyElement)]);
}

const XERIAL = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1]);

function xerial(blocks: readonly Buffer[]): Buffer {
  const framed = blocks.flatMap((block) => {
    const size = Buffer.alloc(4);
    size.writeUInt32BE(block.length);
    return [size, block];
  });
  return Buffer.concat([XERIAL, ...framed]);
}

test('snappy: one block, or several in the frame of Java', () => {
  fc.assert(
    fc.property(fc.array(elements(64), { minLength: 1, maxLength: 4 }), (blocks) => {
      const packed = blocks.map(snappyBlock);
      const plain = blocks.map(unpacked);
      expect(plain[0]?.equals(wholly(snappy(packed[0] as Buffer, LIMIT)))).toBe(true);
      const whole = Buffer.concat(plain);
      expect(whole.equals(wholly(snappy(xerial(packed), LIMIT)))).toBe(true);
      expect(() => wholly(snappy(xerial(packed), whole.length - 1))).toThrow(/too many/);
    }),
  );
});

const extended = (length: number) =>
  length < 15 ? [] : [...new Array<number>(Math.floor((length - 15) / 255)).fill(255), (length - 15) % 255];

function lz4Sequence(bytes: Buffer, match: { distance: number; count: number } | undefined): Buffer {
  const count = match === undefined ? 0 : match.count - 4;
  const token = (Math.min(15, bytes.length) << 4) | Math.min(15, count);
  return Buffer.concat([
    Buffer.from([token, ...extended(bytes.length)]),
    bytes,
    Buffer.from(match === undefined ? [] : [...uint16(match.distance), ...extended(count)]),
  ]);
}

function lz4Block(list: readonly Element[]): Buffer {
  const parts: Buffer[] = [];
  let literals: Buffer[] = [];
  for (const element of list)
    if ('literal' in element) literals.push(element.literal);
    else {
      parts.push(lz4Sequence(Buffer.concat(literals), element));
      literals = [];
    }
  return Buffer.concat([...parts, lz4Sequence(Buffer.concat(literals), undefined)]);
}

/** @param blocks the size of each, as it stands before it, and its bytes */
function frame(flags: number, blocks: readonly { size: number; bytes: Buffer }[]): Buffer {
  const contentSize = new Array<number>((flags & 8) === 0 ? 0 : 8).fill(0);
  const checksum = Buffer.alloc((flags & 16) === 0 ? 0 : 4, 7);
  const framed = blocks.flatMap(({ size, bytes }) => [Buffer.from(uint32(size)), bytes, checksum]);
  const head = Buffer.from([...uint32(0x184d2204), flags, 0x40, ...contentSize, 0]);
  return Buffer.concat([head, ...framed, Buffer.alloc(4)]);
}

const packedLz4 = (bytes: Buffer) => ({ size: bytes.length, bytes });
const plainLz4 = (bytes: Buffer) => ({ size: bytes.length + 0x80000000, bytes });

test('lz4: blocks that are compressed and such that are not, with and without checksums and size', () => {
  const flags = fc.constantFrom(0x60, 0x70, 0x68, 0x78);
  fc.assert(
    fc.property(fc.array(elements(900), { minLength: 1, maxLength: 4 }), flags, (blocks, flag) => {
      const plain = blocks.map(unpacked);
      const packed = frame(
        flag,
        blocks.flatMap((list, i) => [packedLz4(lz4Block(list)), plainLz4(plain[i] as Buffer)]),
      );
      const whole = Buffer.concat(plain.flatMap((bytes) => [bytes, bytes]));
      expect(whole.equals(wholly(lz4Frame(packed, LIMIT)))).toBe(true);
      expect(() => wholly(lz4Frame(packed, whole.length - 1))).toThrow(/too many/);
    }),
  );
});

test('whatever is cut off or changed: an error or other bytes, within the limit', () => {
  fc.assert(
    fc.property(elements(64), fc.nat(), fc.nat(255), fc.boolean(), (list, place, byte, isCut) => {
      for (const [unpack, packed] of [
        [snappy, snappyBlock(list)],
        [snappy, xerial([snappyBlock(list)])],
        [lz4Frame, frame(0x60, [packedLz4(lz4Block(list))])],
      ] as const) {
        const at = place % packed.length;
        const broken = isCut ? packed.subarray(0, at) : Buffer.from(packed);
        if (!isCut) broken[at] = byte;
        try {
          expect(wholly(unpack(broken, 10_000)).length).toBeLessThanOrEqual(10_000);
        } catch (error) {
          expect(types.isNativeError(error)).toBe(true);
        }
      }
    }),
    { numRuns: 500 },
  );
});

/** CPU time of this process in ms: what others do on a busy machine is no step of ours. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function longestStepMs(work: Generator<void, Buffer>): number {
  let longest = 0;
  for (let isDone = false; !isDone; ) {
    const before = cpuMs();
    isDone = work.next().done === true;
    longest = Math.max(longest, cpuMs() - before);
  }
  return longest;
}

/** `count` times the same bytes. */
const repeated = (bytes: readonly number[], count: number) =>
  Buffer.alloc(bytes.length * count, Buffer.from(bytes));

const LETTER = Buffer.from([0, 65]);

const snappyOf = (length: number, ...parts: Buffer[]) => Buffer.concat([varint(length), ...parts]);
const lz4Of = (...parts: Buffer[]) => frame(0x60, [packedLz4(Buffer.concat(parts))]);
/** A block's size alone, which says that it is not compressed. */
const EMPTY = [0, 0, 0, 0x80];

test.each<[string, typeof snappy, Buffer]>([
  ['snappy: a byte at a time', snappy, snappyOf(16 * MIB, repeated([0, 65], 16 * MIB))],
  ['snappy: copies of a byte', snappy, snappyOf(8 * MIB + 1, LETTER, repeated([2, 1, 0], 8 * MIB))],
  ['snappy: copies that overlap', snappy, snappyOf(16 * MIB + 1, LETTER, repeated([254, 1, 0], MIB / 4))],
  ['snappy: blocks without bytes', snappy, Buffer.concat([XERIAL, repeated([0, 0, 0, 1, 0], MIB)])],
  ['lz4: a byte and a copy', lz4Frame, lz4Of(repeated([16, 65, 1, 0], 3 * MIB), Buffer.from([0]))],
  [
    'lz4: a copy of megabytes',
    lz4Frame,
    lz4Of(Buffer.from([31, 65, 1, 0]), repeated([255], 100_000), Buffer.from([0, 0])),
  ],
  [
    'lz4: blocks without bytes',
    lz4Frame,
    Buffer.concat([frame(0x60, []).subarray(0, 7), repeated(EMPTY, MIB), Buffer.alloc(4)]),
  ],
])('%s: rests often enough', (_name, unpack, packed) => {
  // the collector may come in the midst of one attempt
  expect(Math.min(...[0, 1, 2].map(() => longestStepMs(unpack(packed, LIMIT))))).toBeLessThan(50);
});
