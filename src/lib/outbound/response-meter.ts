import { types } from 'node:util';
import type { Dispatcher } from 'undici';

/**
 * What a response may have beside its body, in bytes: interim responses, headers (undici takes `MAX_HEADER_BYTES` of each),
 * empty lines, chunk sizes and their extensions, for which undici has no bound. 80 at once without end held up everything
 * else for seconds.
 */
const BESIDE_BODY = 512 * 1024;
/** For the framing of a body in chunks, of each byte of it. */
const FRAMING_PART = 1 / 4;
/**
 * Pieces of a body whose size is nothing out of the ordinary, and of how many bytes each further one is on average: its
 * sender chooses them, and each costs 5 µs, one byte or 1,000.
 */
const PIECES = 8 * 1024;
const PIECE_BYTES = 64;
/**
 * Interim responses, which cost 10 µs each. One a second is how some say that they are still at work.
 */
const INTERIM_RESPONSES = 500;

/** Measures the response that comes over one connection, and ends it when it is one that nobody would read to its end. */
export class ResponseMeter {
  private all = 0;
  private body = 0;
  private pieces = 0;
  private interim = 0;

  /** @param end cuts the connection */
  constructor(private readonly end: (error: Error) => void) {}

  /** A request was sent: what comes next is another response. */
  begin(): void {
    Object.assign(this, { all: 0, body: 0, pieces: 0, interim: 0 });
  }

  interimResponses(count: number): void {
    this.interim += count;
  }

  /** Bytes were read, of whatever kind; fewer than none: they were given back. @returns whether to go on */
  read(bytes: number): boolean {
    this.all += bytes;
    return this.check();
  }

  /** Of those that were read last: a piece of the body. @returns whether to go on */
  piece(bytes: number): boolean {
    this.body += bytes;
    this.pieces += 1;
    return this.check();
  }

  private check(): boolean {
    const { all, body, pieces, interim } = this;
    // what was read last may be body that is told of in a moment
    const isBeside = all - body > BESIDE_BODY + body * FRAMING_PART;
    const isMinced = pieces > PIECES + body / PIECE_BYTES;
    if (!isBeside && !isMinced && interim <= INTERIM_RESPONSES) return true;
    this.end(new EndlessResponseError());
    return false;
  }
}

/** The meter of the connection that was read last: undici tells of a chunk's body before it reads the next chunk. */
let current: ResponseMeter | undefined;

export function readsFrom(meter: ResponseMeter): void {
  current = meter;
}

/** Tells the meters of the bodies' pieces. */
export const metered: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) =>
  dispatch(options, {
    onRequestStart: (...args) => handler.onRequestStart?.(...args),
    onRequestUpgrade: (...args) => handler.onRequestUpgrade?.(...args),
    onResponseStart: (...args) => handler.onResponseStart?.(...args),
    onResponseData: (controller, chunk) => {
      if (current?.piece(chunk.length) !== false) handler.onResponseData?.(controller, chunk);
    },
    onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
    onResponseError: (...args) => handler.onResponseError?.(...args),
  });

class EndlessResponseError extends Error {
  constructor() {
    super('the response has too much that is no body, or comes in too small pieces');
  }
}

const finalStatus = new WeakMap<Error, number>();

/** Notes the status that stood before what made the response unreadable; other errors say that there was none. */
export function noteStatus(error: Error | undefined, status: number): void {
  if (isUnreadable(error) && status >= 200) finalStatus.set(error, status);
}

/** The final status of a response that nobody would have read to its end. */
export function statusBefore(error: unknown): number | undefined {
  return isUnreadable(error) ? finalStatus.get(error) : undefined;
}

function isUnreadable(error: unknown): error is Error {
  if (error instanceof EndlessResponseError) return true;
  return types.isNativeError(error) && 'code' in error && error.code === 'UND_ERR_HEADERS_OVERFLOW';
}
