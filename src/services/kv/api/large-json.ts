import { isUtf8 } from 'node:buffer';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import { isPlainText } from './plain-text.js';
import { type Encoding, replyJson } from './reply.js';

/** Bytes from which a value is worth a look instead of being made a string: that, its JSON and its bytes are three copies. */
export const LARGE = 16 * 1024;

const HEAD = Buffer.from('{"result":"');
const TAIL = Buffer.from('"}');
const QUOTE = 34;
/** Bytes that are encoded at a time; a multiple of 3, so that only the last piece is padded. */
const PIECE = 48 * 1024;

/**
 * The reply object of one large string as bytes: in base64, or the very bytes where JSON needs no escape in them;
 * `undefined` for other text.
 */
export function largeJson(value: Buffer, encoding: Encoding): Buffer | undefined {
  if (encoding === 'base64') return base64Json(value);
  if (value.includes(QUOTE) || !isUtf8(value) || !isPlainText(value)) return undefined;
  return Buffer.concat([HEAD, value, TAIL]);
}

/** By pieces: base64 of a whole megabyte as a string is copied twice more, and is garbage that costs as much again. */
function base64Json(value: Buffer): Buffer {
  const length = Math.ceil(value.length / 3) * 4;
  const json = Buffer.allocUnsafe(HEAD.length + length + TAIL.length);
  json.set(HEAD);
  let at = HEAD.length;
  for (let from = 0; from < value.length; from += PIECE)
    at += json.write(value.toString('base64', from, from + PIECE), at, 'latin1');
  json.set(TAIL, at);
  return json;
}

/** Elements, and bytes of one string, from which a reply is written in slices: 2 ms. */
const MANY = 5_000;
const LONG = 1024 * 1024;
/** Elements, and bytes of a string, between two places to rest; the latter a multiple of 3, so that base64 can be joined. */
const STEP = 200;
const PART = 96 * 1024;

/** Whether it takes long to write `value` as JSON. */
export function isLarge(value: RespValue): boolean {
  return weightOf(value, MANY) <= 0;
}

/** What is left of `budget`. */
function weightOf(value: RespValue, budget: number): number {
  if (value instanceof Buffer) return value.length > LONG ? 0 : budget - 1;
  if (!Array.isArray(value)) return budget - 1;
  if (value.length >= budget) return 0;
  let left = budget - 1;
  for (let i = 0; i < value.length && left > 0; i++) left = weightOf(value[i], left);
  return left;
}

/** `replyJson` in slices. */
export function* replyPieces(reply: RespValue, encoding: Encoding): Generator<void, Buffer> {
  const pieces = new Pieces();
  yield* writeReply(pieces, reply, encoding);
  return pieces.whole();
}

/** The list of several replies, each as `replyJson` has it. */
export function* listPieces(replies: readonly RespValue[], encoding: Encoding): Generator<void, Buffer> {
  const pieces = new Pieces();
  pieces.add('[');
  for (let i = 0; i < replies.length; i++) {
    if (i > 0) pieces.add(',');
    yield* writeReply(pieces, replies[i], encoding);
    if (i % STEP === STEP - 1) yield;
  }
  pieces.add(']');
  return pieces.whole();
}

function* writeReply(pieces: Pieces, reply: RespValue, encoding: Encoding): Generator<void> {
  const isNested = Array.isArray(reply) || (reply instanceof Buffer && reply.length > PART);
  if (!isNested) {
    pieces.add(replyJson(reply, encoding));
    return;
  }
  pieces.add('{"result":');
  yield* writeValue(pieces, reply, encoding);
  pieces.add('}');
}

const RESULT = '{"result":'.length;

function* writeValue(pieces: Pieces, value: RespValue, encoding: Encoding): Generator<void> {
  if (value instanceof Buffer && value.length > PART) {
    yield* writeLong(pieces, value, encoding);
  } else if (!Array.isArray(value)) {
    pieces.add(elementJson(value, encoding));
  } else {
    pieces.add('[');
    for (let i = 0; i < value.length; i++) {
      if (i > 0) pieces.add(',');
      yield* writeValue(pieces, value[i], encoding);
      if (i % STEP === STEP - 1) yield;
    }
    pieces.add(']');
  }
}

/** Of an array: an `OK` in it is a string as any other, and so is an error. */
function elementJson(value: RespValue, encoding: Encoding): string {
  const inArray: RespValue = [value instanceof RespError ? Buffer.from(value.text) : value];
  return replyJson(inArray, encoding).slice(RESULT + 1, -2);
}

function* writeLong(pieces: Pieces, value: Buffer, encoding: Encoding): Generator<void> {
  pieces.add('"');
  for (let from = 0; from < value.length; ) {
    const to = encoding === 'base64' ? from + PART : boundary(value, from + PART);
    const part = value.subarray(from, to);
    pieces.add(
      encoding === 'base64' ? part.toString('base64') : JSON.stringify(part.toString('utf8')).slice(1, -1),
    );
    from = to;
    yield;
  }
  pieces.add('"');
}

/** The beginning of a character of UTF-8 at or shortly before `wanted`. */
function boundary(value: Buffer, wanted: number): number {
  for (let at = wanted; at > wanted - 4; at--) if (((value[at] ?? 0) & 0xc0) !== 0x80) return at;
  return wanted;
}

/** Text that becomes bytes as it grows. */
class Pieces {
  private readonly done: Buffer[] = [];
  private text = '';

  add(text: string): void {
    this.text += text;
    if (this.text.length < PART) return;
    this.done.push(Buffer.from(this.text));
    this.text = '';
  }

  whole(): Buffer {
    this.done.push(Buffer.from(this.text));
    this.text = '';
    return Buffer.concat(this.done);
  }
}
