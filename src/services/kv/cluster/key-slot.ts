import type { Argument } from '../resp/resp-encoder.js';

/** Slots that the keys of a cluster are divided into. */
export const SLOTS = 16_384;

/** CRC16 with the polynomial 0x1021, begun with 0 (XMODEM): https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/ */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc & 0xffff;
});

/** The slot of a key: of what stands between its first `{` and the next `}`, when that is not empty. */
export function keySlot(key: Argument): number {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  const tagged = close > open + 1;
  const from = tagged ? open + 1 : 0;
  const to = tagged ? close : key.length;
  return (typeof key === 'string' ? crcOfText(key, from, to) : crcOfBytes(key, from, to)) % SLOTS;
}

function crcOfBytes(bytes: Buffer, from: number, to: number): number {
  let crc = 0;
  for (let i = from; i < to; i++) crc = next(crc, bytes[i] as number);
  return crc;
}

function crcOfText(text: string, from: number, to: number): number {
  let crc = 0;
  for (let i = from; i < to; i++) {
    const code = text.charCodeAt(i);
    if (code > 127) {
      const bytes = Buffer.from(text.slice(from, to));
      return crcOfBytes(bytes, 0, bytes.length);
    }
    crc = next(crc, code);
  }
  return crc;
}

function next(crc: number, byte: number): number {
  return ((crc << 8) & 0xffff) ^ (TABLE[(crc >> 8) ^ byte] as number);
}
