import { readInt64 } from '../records/byte-reader.js';

/** Writes Kafka's plain types (the protocol without tagged fields), growing as it goes. */
export class WireWriter {
  private readonly parts: Buffer[] = [];
  private head = Buffer.allocUnsafe(512);
  private at = 0;

  int8(value: number): this {
    this.at = this.room(1).writeInt8(value, this.at);
    return this;
  }

  int16(value: number): this {
    this.at = this.room(2).writeInt16BE(value, this.at);
    return this;
  }

  int32(value: number): this {
    this.at = this.room(4).writeInt32BE(value, this.at);
    return this;
  }

  int64(value: number): this {
    return this.int32(Math.floor(value / 2 ** 32)).int32((value % 2 ** 32) | 0);
  }

  string(value: string | null): this {
    if (value === null) return this.int16(-1);
    const length = Buffer.byteLength(value);
    this.int16(length);
    // first the room, which may begin a new buffer and set `at` back
    const head = this.room(length);
    this.at += head.write(value, this.at, 'utf8');
    return this;
  }

  /** With their length; not copied before the end. */
  bytes(value: Buffer): this {
    this.int32(value.length);
    this.parts.push(this.head.subarray(0, this.at), value);
    this.head = this.head.subarray(this.at);
    this.at = 0;
    return this;
  }

  array<Item>(items: readonly Item[], write: (item: Item) => void): this {
    this.int32(items.length);
    for (const item of items) write(item);
    return this;
  }

  finish(): Buffer {
    return Buffer.concat([...this.parts, this.head.subarray(0, this.at)]);
  }

  private room(count: number): Buffer {
    if (this.at + count <= this.head.length) return this.head;
    this.parts.push(this.head.subarray(0, this.at));
    this.head = Buffer.allocUnsafe(Math.max(4_096, count));
    this.at = 0;
    return this.head;
  }
}

/** Reads them. */
export class WireReader {
  private at = 0;

  constructor(private readonly payload: Buffer) {}

  int16(): number {
    this.at += 2;
    return this.payload.readInt16BE(this.at - 2);
  }

  int32(): number {
    this.at += 4;
    return this.payload.readInt32BE(this.at - 4);
  }

  int64(): number {
    this.at += 8;
    return readInt64(this.payload, this.at - 8);
  }

  bigInt64(): bigint {
    this.at += 8;
    return this.payload.readBigInt64BE(this.at - 8);
  }

  string(): string {
    const length = this.int16();
    this.at += Math.max(0, length);
    return this.payload.toString('utf8', this.at - Math.max(0, length), this.at);
  }

  /** Not copied. */
  bytes(): Buffer {
    const length = Math.max(0, this.int32());
    this.at += length;
    return this.payload.subarray(this.at - length, this.at);
  }

  /** null reads as empty */
  array<Item>(read: () => Item): Item[] {
    return Array.from({ length: Math.max(0, this.int32()) }, read);
  }
}
