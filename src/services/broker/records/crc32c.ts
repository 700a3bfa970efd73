/** Castagnoli's, its bits in reverse. */
const POLYNOMIAL = 0x82f63b78;
/** Bytes that are looked up at a time. */
const SLICES = 8;

/**
 * Checksum of record batches (CRC-32C), of bytes that may come in parts. Eight bytes at a time: one by one, as in kafkajs,
 * takes twice as long (6,000 bytes: 17 instead of 8.5 microseconds).
 */
export class Crc32c {
  private crc = 0xffffffff;

  get value(): number {
    return (this.crc ^ 0xffffffff) >>> 0;
  }

  add(bytes: Buffer): void {
    const { length } = bytes;
    let { crc } = this;
    let at = 0;
    for (const last = length - SLICES; at <= last; at += SLICES) {
      crc ^= word(bytes, at);
      crc =
        lookUp(7, crc & 255) ^
        lookUp(6, (crc >>> 8) & 255) ^
        lookUp(5, (crc >>> 16) & 255) ^
        lookUp(4, crc >>> 24) ^
        lookUp(3, bytes[at + 4] as number) ^
        lookUp(2, bytes[at + 5] as number) ^
        lookUp(1, bytes[at + 6] as number) ^
        lookUp(0, bytes[at + 7] as number);
    }
    for (; at < length; at++) crc = lookUp(0, (crc ^ (bytes[at] as number)) & 255) ^ (crc >>> 8);
    this.crc = crc;
  }
}

function word(bytes: Buffer, at: number): number {
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}

/** What a byte with so many bytes behind it comes to. */
function lookUp(behind: number, byte: number): number {
  return TABLES[behind * 256 + byte] as number;
}

const TABLES = tables();

function tables(): Int32Array {
  const all = new Int32Array(SLICES * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? POLYNOMIAL : 0);
    all[byte] = crc;
  }
  for (let i = 256; i < all.length; i++) {
    const before = all[i - 256] as number;
    all[i] = (all[before & 255] as number) ^ (before >>> 8);
  }
  return all;
}
