import type { Socket } from 'node:net';
import { notConnected, outcomeUnknown, tooMuchUnsent } from '../errors.js';
import { ReplyTooLarge, RespDecoder, RespError, type RespValue } from '../resp/resp-decoder.js';
import type { Argument, Payload } from '../resp/resp-encoder.js';

/** Commands that were sent together and the replies that they get; a link of the queue. */
interface Flight {
  readonly expected: number;
  readonly replies: RespValue[];
  size: number;
  readonly land: (replies: RespValue[]) => void;
  readonly lose: (error: Error) => void;
  next: Flight | undefined;
}

/** Told of what passes over a wire. */
export interface WireObserver {
  /** @param seconds from a write to the reply to its first command; a sample, not every write */
  roundTrip(seconds: number): void;
}

/** Who has a say in what passes over a wire. */
export interface WireHooks {
  readonly observer?: WireObserver | undefined;
  /** Takes what Redis sends unasked, between replies; `false` of what is a reply. */
  readonly takePush?: ((value: RespValue) => boolean) | undefined;
  /** Gets the error replies, and returns what is answered for them. */
  readonly reviseError?: ((error: RespError) => RespError) | undefined;
}

/** What may wait in this process because Redis does not read it, in bytes. */
const UNSENT_LIMIT = 256 * 1024 * 1024;
const WATCH_MS = 500;
/**
 * After so many elements of replies others have their turn. Of a socket that has more, libuv reads up to 2 MiB a turn: half a
 * million elements of a wide reply, which held the loop for 100 to 200 ms.
 */
const ELEMENTS_A_TURN = 20_000;
/** Texts are joined up to so many characters a write: far below what a string may hold, far above a usual tick. */
const JOIN_LENGTH = 4 * 1024 * 1024;

/**
 * RESP2 over one connected, logged-in socket that all requests share. Whatever is submitted while the event loop
 * reads its sockets goes out in one write; replies come back in the same order. Nothing is ever sent twice.
 */
export class Wire {
  private first: Flight | undefined;
  private last: Flight | undefined;
  private firstUnsent: Flight | undefined;
  private unsent: Payload[] = [];
  private closed = false;
  private flights = 0;
  private readonly decoder: RespDecoder;
  private replyLimit = Number.POSITIVE_INFINITY;
  /** The one whose round trip is being measured, and since when. */
  private probe: Flight | undefined;
  private probedAt = 0;
  private heard = false;
  private silentMs = 0;
  private readonly watch: NodeJS.Timeout;

  /**
   * @param stallMs when replies are due and not one byte arrives for so long, the connection is given up
   */
  constructor(
    private readonly socket: Socket,
    private readonly stallMs: number,
    private readonly hooks: WireHooks = {},
  ) {
    const decoder = new RespDecoder((reply, cost) => this.receive(reply, cost));
    this.decoder = decoder;
    socket.on('data', (chunk: Buffer) => {
      this.heard = true;
      try {
        decoder.write(chunk);
        this.rest();
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
    socket.once('close', () => this.close());
    // ioredis listens for one error; a write to a socket that its peer has just ended would be a second, and end the process
    socket.on('error', () => {});
    this.watch = setInterval(() => this.checkProgress(), WATCH_MS);
    this.watch.unref();
  }

  /** From now on, so many bytes of replies are kept for one request; a reply beyond is replaced by an error. */
  limitReplies(bytes: number): void {
    this.replyLimit = bytes;
    this.decoder.limit = bytes;
  }

  /** Requests whose replies are due. */
  get pending(): number {
    return this.flights;
  }

  /** Ends the connection: what waits for a reply is told that its outcome is unknown. */
  cut(reason: Error): void {
    this.socket.destroy(reason);
  }

  /**
   * Sends `payload`, which holds `expected` commands, and resolves to what `finish` makes of their replies.
   * @throws HttpError `backend_unavailable` or `overloaded` when nothing was sent, `outcome_unknown` when the connection broke later
   */
  submit<T>(payload: Payload, expected: number, finish: (replies: RespValue[]) => T): Promise<T> {
    if (this.closed) return Promise.reject(notConnected());
    if (this.socket.writableLength > UNSENT_LIMIT) return Promise.reject(tooMuchUnsent());
    return new Promise<T>((resolve, reject) => {
      const land = (replies: RespValue[]) => {
        try {
          resolve(finish(replies));
        } catch (error) {
          reject(error);
        }
      };
      this.append({ expected, replies: [], size: 0, land, lose: reject, next: undefined }, payload);
    });
  }

  private append(flight: Flight, payload: Payload): void {
    if (this.last === undefined) this.first = flight;
    else this.last.next = flight;
    this.last = flight;
    this.flights += 1;
    if (this.firstUnsent === undefined) {
      this.firstUnsent = flight;
      setImmediate(() => this.flush());
    }
    this.unsent.push(payload);
  }

  private flush(): void {
    // one that its peer has ended takes nothing more; what is unsent is told so when it has closed
    if (this.closed || !this.socket.writable) return;
    const payloads = this.unsent;
    this.unsent = [];
    if (this.hooks.observer !== undefined && this.probe === undefined) {
      this.probe = this.firstUnsent;
      this.probedAt = performance.now();
    }
    this.firstUnsent = undefined;
    let text = '';
    for (const payload of payloads) {
      if (typeof payload !== 'string' || text.length + payload.length > JOIN_LENGTH) {
        if (text !== '') this.socket.write(text);
        text = '';
      }
      if (typeof payload === 'string') text += payload;
      else this.writePieces(payload);
    }
    if (text !== '') this.socket.write(text);
  }

  /** Values of bytes are not copied: the socket takes text and bytes in one go. */
  private writePieces(pieces: readonly Argument[]): void {
    this.socket.cork();
    for (const piece of pieces) {
      if (piece.length > 0) this.socket.write(piece);
    }
    this.socket.uncork();
  }

  private receive(received: RespValue, cost: number): void {
    const { takePush, reviseError: revise } = this.hooks;
    if (takePush?.(received) === true) return;
    const flight = this.first;
    if (flight === undefined) throw new Error('Redis sent a reply that nothing waits for');
    const reply = revise !== undefined && received instanceof RespError ? revise(received) : received;
    flight.size += cost;
    flight.replies.push(flight.size > this.replyLimit ? withinLimit(reply, this.replyLimit) : reply);
    if (flight.replies.length < flight.expected) return;
    this.first = flight.next;
    this.flights -= 1;
    if (flight === this.probe) {
      this.probe = undefined;
      this.hooks.observer?.roundTrip((performance.now() - this.probedAt) / 1_000);
    }
    // one old flight that still pointed at the next would keep all that follow from being collected while young
    flight.next = undefined;
    if (this.first === undefined) this.last = undefined;
    flight.land(flight.replies);
  }

  /** After many elements, until the loop has had a turn. */
  private rest(): void {
    if (this.decoder.elements < ELEMENTS_A_TURN) return;
    this.decoder.elements = 0;
    this.socket.pause();
    setImmediate(() => this.socket.resume());
  }

  private checkProgress(): void {
    this.silentMs = this.heard || this.first === undefined ? 0 : this.silentMs + WATCH_MS;
    this.heard = false;
    if (this.silentMs >= this.stallMs)
      this.socket.destroy(new Error(`no reply from Redis for ${this.stallMs} ms`));
  }

  private close(): void {
    this.closed = true;
    clearInterval(this.watch);
    const lost = outcomeUnknown();
    const unsent = notConnected();
    let error = lost;
    for (let flight = this.first; flight !== undefined; flight = flight.next) {
      if (flight === this.firstUnsent) error = unsent;
      flight.lose(error);
    }
    this.flights = 0;
    this.first = undefined;
    this.last = undefined;
    this.firstUnsent = undefined;
    this.unsent = [];
  }
}

/** An error stays: it is short, and mostly says that the command did not run. */
function withinLimit(reply: RespValue, limit: number): RespError {
  if (reply instanceof RespError) return reply;
  return new ReplyTooLarge(limit);
}
