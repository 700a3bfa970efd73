/** An error reply of Redis: its text as sent, class word first (`ERR ...`, `WRONGTYPE ...`). */
export class RespError {
    text;
    constructor(text) {
        this.text = text;
    }
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
    onReply;
    open = [];
    kept = [];
    keptLength = 0;
    /** So many bytes must be there before decoding is worth another try. */
    needed = 0;
    bytes = Buffer.alloc(0);
    at = 0;
    constructor(onReply) {
        this.onReply = onReply;
    }
    /** @throws Error when the bytes are not RESP2; the stream cannot be used any further */
    write(chunk) {
        if (this.keptLength > 0) {
            this.kept.push(chunk);
            this.keptLength += chunk.length;
            if (this.keptLength < this.needed)
                return;
            this.bytes = Buffer.concat(this.kept, this.keptLength);
            this.kept = [];
            this.keptLength = 0;
        }
        else {
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
            if (element !== OPENED)
                this.finish(element);
        }
    }
    /** Puts a finished element into the array it belongs to; a finished array is an element itself. */
    finish(element) {
        let value = element;
        for (let parent = this.open.at(-1); parent !== undefined; parent = this.open.at(-1)) {
            parent.items.push(value);
            parent.missing -= 1;
            if (parent.missing > 0)
                return;
            this.open.pop();
            value = parent.items;
        }
        this.onReply(value);
    }
    next() {
        const { bytes, at } = this;
        const lineEnd = bytes.indexOf(LINE_FEED, at + 1);
        if (lineEnd < 0)
            return this.incomplete(bytes.length - at + 1);
        const type = bytes[at];
        this.at = lineEnd + 1;
        switch (type) {
            case BULK:
                return this.bulk(at, this.length(at + 1, lineEnd - 1));
            case INTEGER:
                return bytes.toString('latin1', at + 1, lineEnd - 1);
            case STATUS:
                return bytes.subarray(at + 1, lineEnd - 1);
            case ERROR:
                return new RespError(bytes.toString('utf8', at + 1, lineEnd - 1));
            case ARRAY:
                return this.array(this.length(at + 1, lineEnd - 1));
            default:
                throw new Error(`not RESP2: type byte ${type}`);
        }
    }
    bulk(start, length) {
        if (length < 0)
            return null;
        const end = this.at + length;
        if (end + 2 > this.bytes.length)
            return this.incomplete(end + 2 - start);
        const from = this.at;
        this.at = end + 2;
        return this.bytes.subarray(from, end);
    }
    array(length) {
        if (length < 0)
            return null;
        if (length === 0)
            return [];
        this.open.push({ items: [], missing: length });
        return OPENED;
    }
    incomplete(needed) {
        this.needed = needed;
        return INCOMPLETE;
    }
    /** Digits between `from` and `to`; -1 for `-1`, the length of nil. */
    length(from, to) {
        if (this.bytes[from] === ERROR)
            return -1;
        let length = 0;
        for (let i = from; i < to; i++) {
            const digit = this.bytes[i] - 48;
            if (digit < 0 || digit > 9)
                throw new Error('not RESP2: a length is not a number');
            length = length * 10 + digit;
        }
        return length;
    }
}
//# sourceMappingURL=resp-decoder.js.map