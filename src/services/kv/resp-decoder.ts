/** An error reply of Redis: its text as sent, class word first (`ERR ...`, `WRONGTYPE ...`). */
export class RespError {
  constructor(readonly text: string) {}
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

/** Marks that the bytes at hand end inside an element. */
const INCOMPLETE = Symbol('incomplete');
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

  constructor(private readonly onReply: (reply: RespValue) => void) {}

  /** @throws Error when the bytes are not RESP2; the stream cannot be used any further */
  write(chunk: Buffer): void {
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
      if (element !== OPENED) this.finish(element);
    }
  }

  /** Puts a finished element into the array it belongs to; a finished array is an element itself. */
  private finish(element: RespValue): void {
    let value = element;
    for (let parent = this.open.at(-1); parent !== undefined; parent = this.open.at(-1)) {
      parent.items.push(value);
      parent.missing -= 1;
      if (parent.missing > 0) return;
      this.open.pop();
      value = parent.items;
    }
    this.onReply(value);
  }

  private next(): RespValue | typeof INCOMPLETE | typeof OPENED {
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

  private bulk(start: number, length: number): Buffer | null | typeof INCOMPLETE {
    if (length < 0) return null;
    const end = this.at + length;
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
