/** An error reply of Redis: its text as sent, class word first (`ERR ...`, `WRONGTYPE ...`). */
export class RespError {
  constructor(readonly text: string) {}
}

/** What stands for a reply that is larger than is kept; its command ran. */
export class ReplyTooLarge extends RespError {
  constructor(limit: number) {
    super(`ERR the command ran, but replies to one request may have ${limit} bytes together`);
  }
}

/** Arrays within each other that are kept: only scripts make more, and few JSON parsers read them. */
const MOST_DEPTH = 1_000;

/** What stands for a reply that is nested deeper than is kept; its command ran. */
class ReplyTooDeep extends RespError {
  constructor() {
    super(`ERR the command ran, but its reply is nested deeper than ${MOST_DEPTH} arrays`);
  }
}

/** A status reply, such as `OK` or `QUEUED`. */
export class RespStatus {
  constructor(readonly bytes: Buffer) {}
}

/**
 * A RESP2 reply. Bulk strings are bytes, an integer is its digits (64 bits do not fit a JavaScript number), nil is
 * `null`; the nil of an array (`*-1`) is `undefined`, which only the RESP2 output tells from it.
 */
export type RespValue = Buffer | string | null | undefined | RespStatus | RespError | RespValue[];

/** The reply of nearly every write; one object for all of them. */
const OK = new RespStatus(Buffer.from('OK'));

interface OpenArray {
  readonly items: RespValue[];
  missing: number;
}

const STATUS = 43; // +
const ERROR = 45; // -
const INTEGER = 58; // :
const BULK = 36; // $
const ARRAY = 42; // *
const LINE_FEED = 10;

/** What an element costs in memory beside its bytes; measured at over 100 bytes for small strings. */
const ELEMENT_COST = 100;

/** Marks that the bytes at hand end inside an element. */
const INCOMPLETE = Symbol('incomplete');
/** Marks that the rest of an element is passed over. */
const SKIPPED = Symbol('skipped');
const NOTHING = Buffer.alloc(0);
/** Marks that an array was opened: its items follow. */
const OPENED = Symbol('opened');

/**
 * Cuts a RESP2 byte stream into replies. Bytes of an unfinished element are kept until all of them are there and
 * joined once, and finished items of an unfinished array are kept too, so the work is linear however the stream
 * is chunked. Strings are slices of the received chunks: copy what is to be kept long.
 */
export class RespDecoder {
  private readonly open: OpenArray[] = [];
  private kept: Buffer[] = [];
  private keptLength = 0;
  /** So many bytes must be there before decoding is worth another try. */
  private needed = 0;
  private bytes: Buffer = Buffer.alloc(0);
  private at = 0;

  /** Of the reply that is being read: its bytes and its elements' own. */
  private cost = 0;

  private tooDeep = false;
  /** Of the reply that is being read nothing is kept any more. */
  private dropping = false;

  /** So many elements were read, those too that are not kept. */
  elements = 0;

  /** Bytes to come of a string that is not kept. */
  private skipping = 0;
  /** A reply that costs more, in bytes of memory, is not kept while it is read, and becomes a `ReplyTooLarge`. */
  limit = Number.POSITIVE_INFINITY;

  /** @param onReply gets each reply with its cost in bytes of memory */
  constructor(private readonly onReply: (reply: RespValue, cost: number) => void) {}

  /** @throws Error when the bytes are not RESP2; the stream cannot be used any further */
  write(received: Buffer): void {
    const chunk = this.skipping > 0 ? this.skip(received) : received;
    if (chunk.length === 0) return;
    if (this.keptLength > 0) {
      this.kept.push(chunk);
      this.keptLength += chunk.length;
      if (this.keptLength < this.needed) return;
      this.bytes = Buffer.concat(this.kept, this.keptLength);
      this.kept = [];
      this.keptLength = 0;
    } else {
      this.bytes = chunk;
    }
    this.at = 0;
    while (this.at < this.bytes.length) {
      const start = this.at;
      const element = this.next();
      if (element === INCOMPLETE) {
        this.kept = [this.bytes.subarray(start)];
        this.keptLength = this.bytes.length - start;
        return;
      }
      if (element === SKIPPED) return;
      if (element !== OPENED) this.finish(element);
    }
  }

  /** @returns what follows the string that is not kept */
  private skip(chunk: Buffer): Buffer {
    const passed = Math.min(this.skipping, chunk.length);
    this.skipping -= passed;
    if (this.skipping === 0) this.finish(NOTHING);
    return chunk.subarray(passed);
  }

  /** Puts a finished element into the array it belongs to; a finished array is an element itself. */
  private finish(element: RespValue): void {
    let value = element;
    this.elements += 1;
    this.cost += ELEMENT_COST + (value instanceof Buffer ? value.length : 0);
    const isTooLarge =
      this.tooDeep || (this.cost > this.limit && !(value instanceof RespError && this.open.length === 0));
    if (isTooLarge && !this.dropping) {
      this.dropping = true;
      for (const array of this.open) array.items.length = 0;
    }
    for (let parent = this.open.at(-1); parent !== undefined; parent = this.open.at(-1)) {
      if (!isTooLarge) parent.items.push(value);
      parent.missing -= 1;
      if (parent.missing > 0) return;
      this.open.pop();
      value = parent.items;
    }
    const { cost, tooDeep } = this;
    this.cost = 0;
    this.tooDeep = false;
    this.dropping = false;
    if (!isTooLarge) this.onReply(value, cost);
    else this.onReply(tooDeep ? new ReplyTooDeep() : new ReplyTooLarge(this.limit), cost);
  }

  private next(): RespValue | typeof INCOMPLETE | typeof OPENED | typeof SKIPPED {
    const { bytes, at } = this;
    const lineEnd = bytes.indexOf(LINE_FEED, at + 1);
    if (lineEnd < 0) return this.incomplete(bytes.length - at + 1);
    const type = bytes[at];
    this.at = lineEnd + 1;
    switch (type) {
      case BULK:
        return this.bulk(at, this.length(at + 1, lineEnd - 1));
      case INTEGER:
        return bytes.toString('latin1', at + 1, lineEnd - 1);
      case STATUS:
        return this.status(at + 1, lineEnd - 1);
      case ERROR:
        return new RespError(bytes.toString('utf8', at + 1, lineEnd - 1));
      case ARRAY:
        return this.array(this.length(at + 1, lineEnd - 1));
      default:
        throw new Error(`not RESP2: type byte ${type}`);
    }
  }

  private bulk(start: number, length: number): Buffer | null | typeof INCOMPLETE | typeof SKIPPED {
    if (length < 0) return null;
    const end = this.at + length;
    if (length > this.limit && end + 2 > this.bytes.length) {
      this.cost += length;
      this.skipping = end + 2 - this.bytes.length;
      return SKIPPED;
    }
    if (end + 2 > this.bytes.length) return this.incomplete(end + 2 - start);
    const from = this.at;
    this.at = end + 2;
    return this.bytes.subarray(from, end);
  }

  private status(from: number, to: number): RespStatus {
    const { bytes } = this;
    if (to - from === 2 && bytes[from] === 79 && bytes[from + 1] === 75) return OK;
    return new RespStatus(bytes.subarray(from, to));
  }

  private array(length: number): RespValue[] | undefined | typeof OPENED {
    if (length < 0) return undefined;
    if (length === 0) return [];
    this.open.push({ items: [], missing: length });
    if (this.open.length > MOST_DEPTH) this.tooDeep = true;
    return OPENED;
  }

  private incomplete(needed: number): typeof INCOMPLETE {
    this.needed = needed;
    return INCOMPLETE;
  }

  /** Digits between `from` and `to`; -1 for `-1`, the length of nil. */
  private length(from: number, to: number): number {
    if (this.bytes[from] === ERROR) return -1;
    let length = 0;
    for (let i = from; i < to; i++) {
      const digit = (this.bytes[i] as number) - 48;
      if (digit < 0 || digit > 9) throw new Error('not RESP2: a length is not a number');
      length = length * 10 + digit;
    }
    return length;
  }
}
