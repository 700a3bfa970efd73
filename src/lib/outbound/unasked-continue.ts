import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';
import { noteStatus, ResponseMeter, readsFrom } from './response-meter.js';

/** The first bytes of an answer; then the minor version, a blank and the status. */
const START = Buffer.from('HTTP/1.');
const STATUS_AT = START.length + 2;
const [CR, LF, ZERO, THREE, NINE] = [0x0d, 0x0a, 0x30, 0x33, 0x39] as const;

/** The same callback for a connection that takes a 100 nobody asked for, and no response without an end. */
export function tolerant(callback: buildConnector.Callback): buildConnector.Callback {
  return (...result) => {
    const [, socket] = result;
    // with an error there is none, whatever the types say
    if (socket) watch(socket);
    callback(...result);
  };
}

/**
 * Lets a server say `100 Continue` although nobody asked (RFC 9110, 15.2: a client must be able to take interim responses,
 * one or more). undici 8.12 takes every one but this, for which it breaks the connection: the message has arrived, counts as
 * failed and is delivered again. So a 100 is read as 103, early hints.
 */
function watch(socket: Socket): void {
  const read = socket.read.bind(socket);
  const unshift = socket.unshift.bind(socket);
  const write = socket.write.bind(socket);
  const destroy = socket.destroy.bind(socket);
  const interim = new InterimResponses();
  const meter = new ResponseMeter((error) => void socket.destroy(error));
  socket.write = ((...args: Parameters<Socket['write']>) => {
    if (interim.expect()) meter.begin();
    return write(...args);
  }) as Socket['write'];
  socket.read = (size?: number) => {
    const chunk = read(size) as Buffer | null;
    if (chunk === null) return null;
    meter.interimResponses(interim.scan(chunk));
    readsFrom(meter);
    return meter.read(chunk.length) ? chunk : null;
  };
  socket.unshift = (chunk: Buffer) => {
    meter.read(-chunk.length);
    unshift(chunk);
  };
  socket.destroy = (error?: Error) => {
    noteStatus(error, interim.final);
    return destroy(error);
  };
}

/** Looks at what comes before a final response, however it is cut into chunks; later bytes may be a body that looks like it. */
export class InterimResponses {
  /** Bytes of a status line that were seen up to its status; -1: nothing to look for. */
  private at = -1;
  /** Within the headers of an interim response. */
  private inHead = false;
  private lineIsEmpty = false;
  /** Status of the final response; 0 until it has come. */
  final = 0;
  private code = 0;
  private count = 0;

  /** A request was sent: what comes next begins an answer. @returns whether the one before has come */
  expect(): boolean {
    if (this.at >= 0) return false;
    this.at = 0;
    return true;
  }

  /** Writes 103 where `chunk` says 100. @returns how many interim responses begin in it */
  scan(chunk: Buffer): number {
    const before = this.count;
    for (let i = 0; i < chunk.length && this.at >= 0; i++) {
      const byte = chunk[i] as number;
      if (this.inHead) this.header(byte);
      else if (this.status(byte)) chunk[i] = THREE;
    }
    return this.count - before;
  }

  /** @returns whether it is the last digit of a 100 */
  private status(byte: number): boolean {
    const { at } = this;
    // a blank line before a status line means nothing
    if (at === 0 && (byte === CR || byte === LF)) return false;
    const fits = at < START.length ? byte === START[at] : at < STATUS_AT || (byte >= ZERO && byte <= NINE);
    this.at = fits ? at + 1 : -1;
    if (at < STATUS_AT) this.code = 0;
    else this.code = this.code * 10 + byte - ZERO;
    // a connection's response before must not stand for endless hints of the next
    if (at === STATUS_AT) this.final = 0;
    return this.at === STATUS_AT + 3 && this.coded(this.code);
  }

  private coded(code: number): boolean {
    // a 101 is the end of HTTP
    const isInterim = code < 200 && code !== 101;
    if (isInterim) Object.assign(this, { inHead: true, lineIsEmpty: false, count: this.count + 1 });
    else Object.assign(this, { at: -1, final: code });
    return code === 100;
  }

  private header(byte: number): void {
    if (byte === LF && this.lineIsEmpty) Object.assign(this, { inHead: false, at: 0 });
    else if (byte === LF) this.lineIsEmpty = true;
    else if (byte !== CR) this.lineIsEmpty = false;
  }
}
