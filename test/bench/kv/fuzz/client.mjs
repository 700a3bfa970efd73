import { connect } from 'node:net';

/**
 * What came: a reply, the end of the connection before one was complete, nothing in time, or what is no HTTP.
 * @typedef {{ kind: 'reply', status: number, headers: Map<string, string>, body: Buffer } | { kind: 'stream' }
 *   | { kind: 'ended', received: Buffer } | { kind: 'hung', received: Buffer } | { kind: 'no HTTP', received: Buffer }} Reply
 */

/** A connection that writes any bytes and reads replies strictly, one after the other. */
export class FuzzConnection {
  /** Nothing more can be sent or expected. */
  ended = false;
  #socket;
  #chunks = [];
  #length = 0;
  #needed = 0;
  #wake = () => undefined;

  constructor(port) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    this.#socket.on('data', (chunk) => {
      this.#chunks.push(chunk);
      this.#length += chunk.length;
      if (this.#length >= this.#needed) this.#wake();
    });
    const end = () => {
      this.ended = true;
      this.#wake();
    };
    // a reset is an end as well
    this.#socket
      .on('end', end)
      .on('close', end)
      .on('error', () => undefined);
  }

  /** @param {Buffer} bytes */
  write(bytes) {
    if (bytes.length > 0) this.#socket.write(bytes);
  }

  /** Closes the sending side only. */
  end() {
    this.#socket.end();
  }

  /** Cuts it, with a reset when something is unread. */
  destroy() {
    this.ended = true;
    this.#socket.destroy();
  }

  /** Whether bytes have come that belong to no reply. */
  get hasMore() {
    return this.#length > 0;
  }

  /**
   * The next reply.
   * @param {boolean} head it answers a HEAD: without a body
   * @param {number} timeoutMs
   * @returns {Promise<Reply>}
   */
  async reply(head, timeoutMs) {
    const until = performance.now() + timeoutMs;
    for (;;) {
      const reply = this.#parse(head);
      if (reply !== undefined) return reply;
      if (this.ended) return { kind: 'ended', received: this.#received() };
      const left = until - performance.now();
      if (left <= 0) return { kind: 'hung', received: this.#received() };
      await this.#change(left);
    }
  }

  /** Resolves when anything has come, or nothing will. @param {number} timeoutMs */
  async something(timeoutMs) {
    if (!this.hasMore && !this.ended) await this.#change(timeoutMs);
  }

  #change(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #received() {
    const bytes = Buffer.concat(this.#chunks, this.#length);
    this.#chunks = bytes.length === 0 ? [] : [bytes];
    return bytes;
  }

  #parse(head) {
    if (this.#length < this.#needed || this.#length === 0) return undefined;
    const bytes = this.#received();
    const headEnd = bytes.indexOf('\r\n\r\n');
    if (headEnd < 0) return undefined;
    const lines = bytes.latin1Slice(0, headEnd).split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) [ -~]*$/.exec(lines[0])?.[1]);
    const headers = headersOf(lines.slice(1));
    if (Number.isNaN(status) || headers === undefined) return { kind: 'no HTTP', received: bytes };
    if (status === 100) return this.#keep(bytes, headEnd + 4) ?? this.#parse(head);
    if (/^text\/event-stream/.test(headers.get('content-type') ?? '')) return { kind: 'stream' };
    const length = Number(headers.get('content-length') ?? Number.NaN);
    if (!Number.isInteger(length)) return { kind: 'no HTTP', received: bytes };
    const end = headEnd + 4 + (head ? 0 : length);
    this.#needed = end;
    if (bytes.length < end) return undefined;
    this.#keep(bytes, end);
    return { kind: 'reply', status, headers, body: bytes.subarray(headEnd + 4, end) };
  }

  #keep(bytes, from) {
    const rest = bytes.subarray(from);
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#length = rest.length;
    this.#needed = 0;
    return undefined;
  }
}

/** By name in lower case; `undefined` when a line is no header. */
function headersOf(lines) {
  const headers = new Map();
  for (const line of lines) {
    const match = /^([A-Za-z0-9-]+): ([\x20-\x7e]*)$/.exec(line);
    if (match === null) return undefined;
    headers.set(match[1].toLowerCase(), match[2]);
  }
  return headers;
}
