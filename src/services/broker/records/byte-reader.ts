import type { ByteSource } from './json-bytes.js';

/** Reads what records are made of, one after the other. */
export class ByteReader {
  constructor(
    readonly source: ByteSource,
    public at: number,
  ) {}

  skip(count: number): void {
    this.at += count;
  }

  /** Up to 2^53; offsets and times are far below. */
  varint(): number {
    const { bytes } = this.source;
    let byte = bytes[this.at++] as number;
    if (byte < 128) return (byte >> 1) ^ -(byte & 1);
    let raw = byte & 127;
    for (let factor = 128; byte >= 128; factor *= 128) {
      byte = bytes[this.at++] as number;
      raw += (byte & 127) * factor;
    }
    return raw % 2 === 0 ? raw / 2 : -(raw + 1) / 2;
  }
}

export function readInt64(bytes: Buffer, at: number): number {
  return bytes.readInt32BE(at) * 2 ** 32 + bytes.readUInt32BE(at + 4);
}
