import { connect } from 'node:net';

/** Longest wait for a single reply, in ms. */
const REPLY_MS = 30_000;

/**
 * A kept connection with one request in flight. Requests are written as they are, and of a reply only status, length
 * and body are looked at: on cores that the load shares with the server, the load must not be what is measured.
 */
export class HttpConnection {
  #socket;
  #onReply;
  #onEnd = () => undefined;
  #chunks = [];
  #length = 0;
  /** Bytes of the reply that is being received; 0 until its head is complete. */
  #expected = 0;
  #bodyAt = 0;
  /** Set when the server has closed an idle connection. */
  ended = false;

  /** @param {import('node:net').Socket} socket */
  constructor(socket) {
    this.#socket = socket;
    socket.setTimeout(REPLY_MS, () => socket.destroy(new Error(`no reply within ${REPLY_MS} ms`)));
    socket.on('data', (chunk) => this.#receive(chunk));
    socket.on('error', (error) => this.#onEnd(error));
    socket.on('close', () => {
      this.ended = true;
      this.#onEnd(new Error('the server closed a connection'));
    });
  }

  /** @param {number} port @returns {Promise<HttpConnection>} */
  static open(port) {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true });
      socket.once('error', reject).once('connect', () => resolve(new HttpConnection(socket)));
    });
  }

  /**
   * Writes a request.
   * @param {Buffer} request
   * @param {(status: number, body: Buffer) => void} onReply may send the next one
   * @param {(error: Error) => void} onEnd the connection ended before the reply
   */
  send(request, onReply, onEnd) {
    this.#onReply = onReply;
    this.#onEnd = onEnd;
    if (this.ended) onEnd(new Error('the server had closed this connection'));
    else this.#socket.write(request);
  }

  close() {
    this.#onEnd = () => undefined;
    this.#socket.end();
  }

  #receive(chunk) {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#expected === 0 && !this.#readHead()) return;
    if (this.#length < this.#expected) return;
    const reply = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks, this.#length);
    const bodyAt = this.#bodyAt;
    this.#chunks = [];
    this.#length = 0;
    this.#expected = 0;
    // HTTP/1.1 200
    this.#onReply(Number(reply.latin1Slice(9, 12)), reply.subarray(bodyAt));
  }

  #readHead() {
    const bytes = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks, this.#length);
    const end = bytes.indexOf('\r\n\r\n');
    if (end < 0) return false;
    const length = /\r\ncontent-length: (\d+)/i.exec(bytes.latin1Slice(0, end))?.[1] ?? 0;
    this.#bodyAt = end + 4;
    this.#expected = this.#bodyAt + Number(length);
    return true;
  }
}
