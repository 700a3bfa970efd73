import { isUtf8 } from 'node:buffer';

/** Bytes that text is read from, and the same as a `DataView`, which reads four at a time. */
export interface ByteSource {
  readonly bytes: Buffer;
  readonly view: DataView;
}

export function byteSource(bytes: Buffer): ByteSource {
  return { bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length) };
}

/** Text that is written again and again, prepared: its length is rounded up to whole words of four bytes. */
export interface JsonConstant {
  readonly length: number;
  readonly words: DataView;
}

export function jsonConstant(text: string): JsonConstant {
  const bytes = Buffer.from(text);
  const padded = new ArrayBuffer(Math.ceil(bytes.length / WORD) * WORD);
  new Uint8Array(padded).set(bytes);
  return { length: bytes.length, words: new DataView(padded) };
}

const WORD = 4;
/** Of every byte of a word. */
const HIGH_BITS = 0x80808080 | 0;
const ONES = 0x01010101;
const BLANKS = 0x20202020;
const QUOTES = 0x22222222;
const BACKSLASHES = 0x5c5c5c5c;

const BACKSLASH = 0x5c;
const MINUS = 0x2d;
const ZERO = 0x30;
/** Two of them make any safe integer; divisions of small integers are cheap. */
const HALF = 1e9;
const HALF_DIGITS = 9;

/** Most bytes that one byte of text becomes: \u0001. */
const EXPANSION = 6;
/** A number, or what a constant writes beyond its end. */
const LONGEST_NUMBER = 32;
/** What is written to at a time, in bytes: a reply of the usual size. One such is kept for the next text. */
const CHUNK = 1024 * 1024;
/** Of a long text, what is written between two places to rest, in bytes: of letters that are escaped it takes 1 ms. */
const PIECE = 32 * 1024;
/** The same of what becomes base64: whole groups of three, so that there is no padding but at the end. */
const BASE64_PIECE = 192 * 1024;

let spare: Buffer | undefined;

/**
 * JSON text as bytes, made out of bytes in one pass. As strings they would be decoded, escaped, measured and encoded
 * again: 0.75 instead of 0.2 microseconds for 200 bytes of ASCII, 2 instead of 0.5 for 200 of other letters.
 */
export class JsonBytes {
  private bytes: Buffer;
  private view: DataView;
  private at = 0;
  /** What was written before `bytes`. */
  private readonly full: Buffer[] = [];

  constructor() {
    this.bytes = spare ?? Buffer.allocUnsafeSlow(CHUNK);
    spare = undefined;
    this.view = byteSource(this.bytes).view;
  }

  /** A copy of what was written; nothing may be written any more. */
  *finish(): Generator<void, Buffer> {
    const chunks = [...this.full, this.bytes.subarray(0, this.at)];
    const text = Buffer.allocUnsafe(chunks.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const chunk of chunks) {
      if (at > 0) yield;
      text.set(chunk, at);
      at += chunk.length;
    }
    if (this.bytes.length === CHUNK) spare = this.bytes;
    return text;
  }

  constant({ length, words }: JsonConstant): void {
    this.reserve(words.byteLength);
    const { view, at } = this;
    for (let i = 0; i < words.byteLength; i += WORD) view.setInt32(at + i, words.getInt32(i, true), true);
    this.at = at + length;
  }

  integer(value: number): void {
    this.reserve(LONGEST_NUMBER);
    const size = Math.abs(value);
    if (size > Number.MAX_SAFE_INTEGER) {
      this.at += this.bytes.write(String(value), this.at, 'latin1');
      return;
    }
    if (value < 0) this.bytes[this.at++] = MINUS;
    if (size < HALF) this.digits(size | 0, digitsOf(size | 0));
    else {
      const high = Math.floor(size / HALF) | 0;
      this.digits(high, digitsOf(high));
      this.digits((size - high * HALF) | 0, HALF_DIGITS);
    }
  }

  /** Text between the quotes of a string, from UTF-8; bytes that are none become U+FFFD. */
  text(source: ByteSource, start: number, end: number): void {
    this.reserve((end - start) * EXPANSION);
    const from = source.view;
    const to = this.view;
    let { at } = this;
    let i = start;
    for (const last = end - WORD; i <= last; i += WORD, at += WORD) {
      const word = from.getInt32(i, true);
      const ifQuote = (word ^ QUOTES) - ONES;
      const ifBackslash = (word ^ BACKSLASHES) - ONES;
      // a byte below a blank, a zero made of a quote or a backslash, a byte that is not ASCII: each leaves a high bit
      if ((((word - BLANKS) | ifQuote | ifBackslash | word) & HIGH_BITS) === 0) to.setInt32(at, word, true);
      else {
        if ((word & HIGH_BITS) !== 0) break;
        for (let j = i; j < i + WORD; j++) at = this.put(source.bytes[j] as number, at);
        at -= WORD;
      }
    }
    for (; i < end; i++) {
      const byte = source.bytes[i] as number;
      if (byte >= 0x80) break;
      at = this.put(byte, at);
    }
    this.at = at;
    if (i < end) this.beyondAscii(source.bytes, i, end);
  }

  /** The same for any length. */
  *longText(source: ByteSource, start: number, end: number): Generator<void, void> {
    for (let at = start; at < end; ) {
      const cut = end - at <= PIECE ? end : characterAt(source.bytes, at + PIECE);
      this.text(source, at, cut);
      at = cut;
      yield;
    }
  }

  /** Bytes as base64, between quotes; no more than `BASE64_PIECE` at once, but for the last. */
  *base64(source: ByteSource, start: number, end: number): Generator<void, void> {
    for (let at = start; at < end; at += BASE64_PIECE) {
      const text = source.bytes.toString('base64', at, Math.min(end, at + BASE64_PIECE));
      this.reserve(text.length);
      this.at += this.bytes.write(text, this.at, 'latin1');
      if (end - at > BASE64_PIECE) yield;
    }
  }

  private beyondAscii(source: Buffer, start: number, end: number): void {
    if (!isUtf8(source.subarray(start, end))) {
      const json = JSON.stringify(source.toString('utf8', start, end));
      this.at += this.bytes.write(json.slice(1, -1), this.at, 'utf8');
      return;
    }
    let { at } = this;
    for (let i = start; i < end; i++) at = this.put(source[i] as number, at);
    this.at = at;
  }

  /** One byte of UTF-8. @returns where the next one goes */
  private put(byte: number, at: number): number {
    const { bytes } = this;
    const letter = ESCAPES[byte] as number;
    if (letter === 0) {
      bytes[at] = byte;
      return at + 1;
    }
    bytes[at] = BACKSLASH;
    bytes[at + 1] = letter;
    if (letter !== LETTER_U) return at + 2;
    bytes[at + 2] = ZERO;
    bytes[at + 3] = ZERO;
    bytes[at + 4] = ZERO + (byte >> 4);
    bytes[at + 5] = HEX[byte & 15] as number;
    return at + EXPANSION;
  }

  private digits(value: number, count: number): void {
    const { bytes, at } = this;
    let left = value;
    for (let i = at + count - 1; i >= at; i--) {
      const tenth = (left / 10) | 0;
      bytes[i] = ZERO + left - tenth * 10;
      left = tenth;
    }
    this.at = at + count;
  }

  /** Makes room for so many bytes. */
  private reserve(count: number): void {
    if (this.at + count <= this.bytes.length) return;
    this.full.push(this.bytes.subarray(0, this.at));
    this.bytes = Buffer.allocUnsafeSlow(Math.max(count, CHUNK));
    this.view = byteSource(this.bytes).view;
    this.at = 0;
  }
}

/** Where the character of UTF-8 begins that the byte at `at` is of: text that is cut there is read as the whole is. */
function characterAt(bytes: Buffer, at: number): number {
  for (let begin = at; begin > at - LONGEST_CHARACTER; begin--)
    if (((bytes[begin] as number) & CONTINUATION_BITS) !== CONTINUATION) return begin;
  return at;
}

function digitsOf(value: number): number {
  let count = 1;
  for (let limit = 10; value >= limit && count < HALF_DIGITS; limit *= 10) count++;
  return count;
}

/** Of UTF-8, in bytes. */
const LONGEST_CHARACTER = 4;
const CONTINUATION_BITS = 0xc0;
const CONTINUATION = 0x80;

const LETTER_U = 'u'.charCodeAt(0);
const HEX = Buffer.from('0123456789abcdef');
/** By byte: what follows the backslash, 0 where there is none. */
const ESCAPES = Uint8Array.from({ length: 256 }, (_, byte) => {
  const json = JSON.stringify(String.fromCharCode(byte));
  return json.length > 3 ? json.charCodeAt(2) : 0;
});
