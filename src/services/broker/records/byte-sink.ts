/** Up to so many bytes a loop over them costs less than a call of copyWithin or copy. */
const SHORT = 32;
/** From so many bytes on a repeated pattern is copied in pieces that double. */
const LONG = 256;
/** What is copied at once where the sink grows, in bytes: well below 1 ms. */
const PIECE = 1024 * 1024;

/** There are more than the limit. */
export class TooManyBytes extends Error {}

/** Is written to up to a limit; copies from what it holds, as LZ77 formats need it. */
export class ByteSink {
  /** Of what is written. */
  length = 0;
  private bytes: Buffer;

  constructor(
    expected: number,
    private readonly limit: number,
  ) {
    if (expected > limit) throw new TooManyBytes('the unpacked bytes are too many');
    this.bytes = Buffer.allocUnsafe(expected);
  }

  get written(): Buffer {
    return this.bytes.subarray(0, this.length);
  }

  /** Whether there is room for so many bytes; otherwise it must `grow`. */
  fits(count: number): boolean {
    return this.length + count <= this.bytes.length;
  }

  /** Makes room for so many bytes. @throws TooManyBytes */
  *grow(count: number): Generator<void, void> {
    const { bytes, length, limit } = this;
    const needed = length + count;
    if (needed > limit) throw new TooManyBytes('the unpacked bytes are too many');
    const larger = Buffer.allocUnsafe(Math.min(limit, Math.max(needed, bytes.length * 2)));
    for (let at = 0; at < length; at += PIECE) {
      bytes.copy(larger, at, at, Math.min(length, at + PIECE));
      yield;
    }
    this.bytes = larger;
  }

  /** There must be room. */
  literal(source: Buffer, from: number, count: number): void {
    const { bytes, length } = this;
    const end = length + count;
    if (from + count > source.length) throw new Error('the packed bytes end too early');
    if (end > bytes.length) throw new Error('more bytes than announced');
    if (count > SHORT) source.copy(bytes, length, from, from + count);
    else for (let i = 0; i < count; i++) bytes[length + i] = source[from + i] as number;
    this.length = end;
  }

  /** Repeats `count` bytes from `distance` back; the two may overlap. There must be room. */
  repeat(distance: number, count: number): void {
    const { bytes, length } = this;
    const end = length + count;
    if (distance === 0 || distance > length) throw new Error('a copy begins before the start');
    if (end > bytes.length) throw new Error('more bytes than announced');
    const start = length - distance;
    if (count <= SHORT || (distance < count && count < LONG))
      for (let i = 0; i < count; i++) bytes[length + i] = bytes[start + i] as number;
    else if (distance >= count) bytes.copyWithin(length, start, start + count);
    // what can be copied grows with each copy
    else
      for (let copied = 0; copied < count; ) {
        const size = Math.min(distance + copied, count - copied);
        bytes.copyWithin(length + copied, start, start + size);
        copied += size;
      }
    this.length = end;
  }
}
