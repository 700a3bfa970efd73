import { isUtf8 } from 'node:buffer';
import { JSON_BOUNDS, type JsonBounds, JsonProblem, notJson } from './json-bounds.js';
import { BLANK, Frame, type ReadMembers } from './json-frame.js';
import { longString, stringEnd } from './json-string.js';

/** Bits of the hashes that are told apart: of 100,000 different keys 5 % look like another. */
const BITS = 20;

/** Counts the different keys of a JSON text: each costs V8 some 200 bytes and 6 µs, an equal one next to nothing. */
class KeyCount {
  private readonly seen = new Uint8Array(1 << BITS);
  private different = 0;

  /** @param start of the key between its quotes @throws JsonProblem when there are too many */
  add(body: Buffer, start: number, end: number): void {
    // FNV-1a
    let hash = 0x811c9dc5;
    for (let i = start; i < end; i++) hash = Math.imul(hash ^ (body[i] as number), 0x01000193);
    const place = (hash ^ (hash >>> BITS)) & ((1 << BITS) - 1);
    if (this.seen[place] === 1) return;
    this.seen[place] = 1;
    if (++this.different > JSON_BOUNDS.keys)
      throw new JsonProblem(`more than ${JSON_BOUNDS.keys} different keys`);
  }
}

/** Bodies up to so many bytes are parsed in one go: 4 ms at most, measured with `[{},{},...`. */
export const WHOLE_BYTES = 256 * 1024;
/** JSON.parse gets pieces of about this size: 1 ms of the emptiest elements. */
const PIECE = 64 * 1024;
/** A number, a key or blanks between elements of so many bytes mean nothing that a service has. */
const LONGEST_TOKEN = 1024 * 1024;

const [QUOTE, BACKSLASH, COMMA, COLON, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [
  0x22, 0x5c, 0x2c, 0x3a, 0x5b, 0x5d, 0x7b, 0x7d,
] as const;

/** By byte: whether the scanner has to look at it. */
const MARKS = new Uint8Array(256);
for (const byte of [QUOTE, COMMA, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT]) MARKS[byte] = 1;
/** Bytes of a string that are looked at one by one. */
const SHORT_STRING = 64;

const membersOf: ReadMembers = (text) => JSON.parse(`[${text}]`) as unknown[];

/**
 * What JSON.parse makes of `body`, a piece at a time. Whatever does not fit into a piece is taken apart: containers into
 * their members, long strings into parts. As fast as JSON.parse but for one look at every byte (1 ns).
 * @param readMembers what stands in place of JSON.parse for members of arrays
 * @throws JsonProblem for what is no JSON, and beyond `bounds`
 */
export function* parseInPieces(
  body: Buffer,
  readMembers: ReadMembers = membersOf,
  bounds: JsonBounds = JSON_BOUNDS,
): Generator<void, unknown> {
  if (!isUtf8(body)) throw new JsonProblem('not valid UTF-8');
  return yield* new PieceParser(body, readMembers, bounds).run();
}

class PieceParser {
  private readonly frames: Frame[] = [new Frame(true)];
  /** Of the containers that are open. */
  private readonly opens = new Float64Array(JSON_BOUNDS.depth + 2);
  private readonly commas = new Float64Array(JSON_BOUNDS.depth + 2).fill(-1);
  private readonly keys = new KeyCount();
  private depth = 0;
  private things = 0;
  private values = 0;
  /** What is scanned and not yet parsed begins here. */
  private from = 0;
  /** Where the string begins that the scanner is in; -1 in none. */
  private quote = -1;
  private at = 0;

  constructor(
    private readonly body: Buffer,
    private readonly readMembers: ReadMembers,
    private readonly bounds: JsonBounds,
  ) {}

  *run(): Generator<void, unknown> {
    const { body } = this;
    while (this.at < body.length) {
      this.scan(Math.min(body.length, this.at + PIECE / 4));
      if (this.quote >= 0) yield* this.takeString();
      if (this.at - this.from > PIECE) this.reduce();
      yield;
    }
    const root = this.frames[0] as Frame;
    if (this.frames.length > 1 || this.depth > 0) throw notJson(body.length);
    this.flush(body.length, true);
    if (root.count !== 1) throw notJson(body.length);
    return (root.value as unknown[])[0];
  }

  private get base(): number {
    return this.frames.length - 1;
  }

  private get innermost(): Frame {
    return this.frames[this.frames.length - 1] as Frame;
  }

  /** Goes on to `end`, or into a string that is not short. */
  private scan(end: number): void {
    const { body, commas } = this;
    let i = this.at;
    for (; i < end; i++) {
      const byte = body[i] as number;
      if (MARKS[byte] === 0) continue;
      if (byte === QUOTE) {
        const near = Math.min(body.length, i + SHORT_STRING);
        const open = i++;
        while (i < near && body[i] !== QUOTE) i += body[i] === BACKSLASH ? 2 : 1;
        if (i >= near) {
          this.quote = open;
          break;
        }
        if (body[i + 1] === COLON) this.keys.add(body, open + 1, i);
        else this.count();
        continue;
      }
      if (byte === COMMA) {
        this.values++;
        if (this.depth >= this.frames.length) commas[this.depth] = i;
        else this.comma(i);
      } else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) this.open(i);
      else this.close(i, byte === CLOSE_ARRAY);
    }
    this.at = i;
    if (this.values > this.bounds.values) throw new JsonProblem(`more than ${this.bounds.values} values`);
  }

  private count(): void {
    if (++this.things > this.bounds.things)
      throw new JsonProblem(`more than ${this.bounds.things} strings, arrays and objects`);
  }

  private open(at: number): void {
    this.count();
    if (++this.depth > JSON_BOUNDS.depth)
      throw new JsonProblem(`nested deeper than ${JSON_BOUNDS.depth} levels`);
    this.opens[this.depth] = at;
    this.commas[this.depth] = -1;
  }

  /** One between members of the innermost frame. */
  private comma(at: number): void {
    if (this.innermost.attached) {
      this.flush(at, false);
      this.from = at + 1;
    } else this.commas[this.depth] = at;
  }

  private close(at: number, isArray: boolean): void {
    const { base } = this;
    if (this.depth > base) {
      this.depth--;
      return;
    }
    const closed = this.innermost;
    if (base === 0 || closed.isArray !== isArray) throw notJson(at);
    this.flush(at, true);
    this.frames.pop();
    this.depth--;
    this.from = at + 1;
    this.innermost.attached = true;
  }

  /** Parses what is complete; goes into a member that is too large to wait for. */
  private reduce(): void {
    for (;;) {
      this.flushComplete();
      if (this.at - this.from <= PIECE) return;
      if (this.depth === this.base) break;
      this.enter();
    }
    if (this.at - this.from > LONGEST_TOKEN)
      throw new JsonProblem(`a number, a key or blanks of more than ${LONGEST_TOKEN} bytes`);
  }

  /** Makes the member that is open in the innermost frame a frame of its own. */
  private enter(): void {
    const open = this.opens[this.base + 1] as number;
    const child = new Frame(this.body[open] === OPEN_ARRAY);
    this.innermost.attach(child.value, this.body.toString('utf8', this.from, open), this.from);
    this.frames.push(child);
    this.from = open + 1;
  }

  /** Goes behind the string that is open. One longer than a piece is decoded and put where it belongs. */
  private *takeString(): Generator<void> {
    const open = this.quote;
    const end = yield* stringEnd(this.body, this.at);
    if (this.body[end + 1] === COLON) this.keys.add(this.body, open + 1, Math.min(end, open + PIECE));
    else this.count();
    if (end === this.body.length) throw notJson(open);
    this.quote = -1;
    this.at = end + 1;
    if (end - open <= PIECE) return;
    this.flushComplete();
    while (this.depth > this.base) {
      this.enter();
      this.flushComplete();
    }
    const parent = this.innermost;
    const before = this.body.toString('utf8', this.from, open);
    if (!parent.isArray && BLANK.test(before)) throw new JsonProblem(`a key of more than ${PIECE} bytes`);
    const text = yield* longString(this.body, open + 1, end, PIECE);
    if (text === undefined) throw notJson(open);
    parent.attach(text, before, this.from);
    parent.attached = true;
    this.from = end + 1;
  }

  /** Parses the members of the innermost frame that a comma follows. */
  private flushComplete(): void {
    const comma = this.commas[this.base] as number;
    if (comma < this.from) return;
    this.flush(comma, false);
    this.from = comma + 1;
  }

  /** Parses the members that stand before `to`. @param last whether the container ends there */
  private flush(to: number, last: boolean): void {
    this.innermost.add(this.body.toString('utf8', this.from, to), this.from, last, this.readMembers);
  }
}
