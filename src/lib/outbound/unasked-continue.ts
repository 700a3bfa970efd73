import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';

/** The first bytes of an answer; then the minor version, a blank and the status. */
const START = Buffer.from('HTTP/1.');
const STATUS_AT = START.length + 2;
const [CR, LF, ZERO, ONE, THREE] = [0x0d, 0x0a, 0x30, 0x31, 0x33] as const;

/** The same callback for a connection that takes a 100 nobody asked for. */
export function tolerant(callback: buildConnector.Callback): buildConnector.Callback {
  return (...result) => {
    const [, socket] = result;
    // with an error there is none, whatever the types say
    if (socket) allowContinue(socket);
    callback(...result);
  };
}

/**
 * Lets a server say `100 Continue` although nobody asked (RFC 9110, 15.2: a client must be able to take interim responses,
 * one or more). undici 8.12 takes every one but this, for which it breaks the connection: the message has arrived, counts as
 * failed and is delivered again. So a 100 is read as 103, early hints.
 */
function allowContinue(socket: Socket): void {
  const read = socket.read.bind(socket);
  const write = socket.write.bind(socket);
  const interim = new InterimResponses();
  socket.write = ((...args: Parameters<Socket['write']>) => {
    interim.expect();
    return write(...args);
  }) as Socket['write'];
  socket.read = (size?: number) => {
    const chunk = read(size) as Buffer | null;
    if (chunk !== null) interim.scan(chunk);
    return chunk;
  };
}

/** Looks at what comes before a final response, however it is cut into chunks; later bytes may be a body that looks like it. */
export class InterimResponses {
  /** Bytes of a status line that were seen up to its status; -1: nothing to look for. */
  private at = -1;
  /** Within the headers of an interim response. */
  private inHead = false;
  private lineIsEmpty = false;

  /** A request was sent: what comes next begins an answer. */
  expect(): void {
    if (this.at < 0) this.at = 0;
  }

  /** Writes 103 where `chunk` says 100. */
  scan(chunk: Buffer): void {
    for (let i = 0; i < chunk.length && this.at >= 0; i++) {
      const byte = chunk[i] as number;
      if (this.inHead) this.header(byte);
      else if (this.status(byte)) chunk[i] = THREE;
    }
  }

  /** @returns whether it is the last digit of a 100 */
  private status(byte: number): boolean {
    const { at } = this;
    // a blank line before a status line means nothing
    if (at === 0 && (byte === CR || byte === LF)) return false;
    const isInterim =
      at < START.length
        ? byte === START[at]
        : at < STATUS_AT || (at === STATUS_AT ? byte === ONE : at > STATUS_AT + 1 || byte === ZERO);
    this.at = isInterim ? at + 1 : -1;
    if (this.at !== STATUS_AT + 3) return false;
    // a 101 is the end of HTTP
    if (byte === ONE) this.at = -1;
    else Object.assign(this, { inHead: true, lineIsEmpty: false });
    return byte === ZERO;
  }

  private header(byte: number): void {
    if (byte === LF && this.lineIsEmpty) Object.assign(this, { inHead: false, at: 0 });
    else if (byte === LF) this.lineIsEmpty = true;
    else if (byte !== CR) this.lineIsEmpty = false;
  }
}
