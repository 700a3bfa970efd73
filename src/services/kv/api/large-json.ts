import { RespError, type RespValue } from '../resp/resp-decoder.js';
import { type Encoding, replyJson } from './reply.js';

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
