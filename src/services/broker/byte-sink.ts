/** From so many bytes on a call of copyWithin costs less than a loop over them. */
const LONG = 256;

/** There are more than the limit. */
export class TooManyBytes extends Error {}

/** Grows as it is written to, up to a limit; copies from what it holds, as LZ77 formats need it. */
export class ByteSink {
  private bytes: Buffer;
  private length = 0;

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

  literal(source: Buffer, from: number, count: number): void {
    if (from + count > source.length) throw new Error('the packed bytes end too early');
    this.makeRoom(count);
    source.copy(this.bytes, this.length, from, from + count);
    this.length += count;
  }

  /** Repeats `count` bytes from `distance` back; the two may overlap. */
  repeat(distance: number, count: number): void {
    if (distance === 0 || distance > this.length) throw new Error('a copy begins before the start');
    this.makeRoom(count);
    const { bytes } = this;
    const { length } = this;
    const start = length - distance;
    if (distance >= count) bytes.copyWithin(length, start, start + count);
    else if (count < LONG) for (let i = 0; i < count; i++) bytes[length + i] = bytes[start + i] as number;
    // what can be copied grows with each copy
    else
      for (let copied = 0; copied < count; ) {
        const size = Math.min(distance + copied, count - copied);
        bytes.copyWithin(length + copied, start, start + size);
        copied += size;
      }
    this.length += count;
  }

  private makeRoom(count: number): void {
    const needed = this.length + count;
    if (needed <= this.bytes.length) return;
    if (needed > this.limit) throw new TooManyBytes('the unpacked bytes are too many');
    const larger = Buffer.allocUnsafe(Math.min(this.limit, Math.max(needed, this.bytes.length * 2)));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }
}
