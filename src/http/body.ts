import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { JsonProblem } from '../lib/json/json-bounds.js';
import { parseInPieces, WHOLE_BYTES } from '../lib/json/sliced-json.js';
import { inSlices } from '../lib/slices.js';
import { HttpError } from './errors.js';

/** The body of a request without one. */
export const NOTHING = Buffer.alloc(0);

/** Most bytes of an unwanted body that are read and thrown away before the connection is cut. */
const DISCARD_BYTES = 64 * 1024 * 1024;
/** How long that may take, in ms. */
const DISCARD_MS = 10_000;

/** Whether the head announces a body; one of no bytes counts. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

/**
 * The whole body, at most `limit` bytes.
 * @param onProgress called with each chunk, so that a stalled body can be told from a slow one
 * @throws HttpError `payload_too_large` (before anything is read when Content-Length says so), `client_gone`
 */
export function readBody(request: IncomingMessage, limit: number, onProgress: () => void): Promise<Buffer> {
  const declared = request.headers['content-length'];
  if (!hasBody(request)) return Promise.resolve(NOTHING);
  if (declared !== undefined && Number(declared) > limit) return Promise.reject(tooLarge(limit));
  return new Promise((resolve, reject) => {
    const pieces = new BodyPieces(declared === undefined ? Number.POSITIVE_INFINITY : Number(declared));
    const release = () => {
      request.off('data', onData).off('end', onEnd).off('close', onGone).off('error', onGone);
    };
    const onData = (chunk: Buffer) => {
      onProgress();
      if (pieces.size + chunk.length > limit) {
        release();
        request.pause();
        reject(tooLarge(limit));
      } else {
        pieces.add(chunk);
      }
    };
    const onEnd = () => {
      release();
      resolve(pieces.whole());
    };
    const onGone = () => {
      release();
      reject(new HttpError('client_gone'));
    };
    request.on('data', onData).on('end', onEnd).on('close', onGone).on('error', onGone);
  });
}

/** A body that is announced gets its whole memory once one part in so many of it is there: nobody gets memory by promises. */
const PART_OF_PROMISE = 8;

/**
 * Puts a body together. Where its length is known, pieces are copied as they come: they are garbage at once then, which
 * costs next to nothing, while pieces that live on until the last one make V8 mark its whole heap every few large bodies.
 */
class BodyPieces {
  size = 0;
  private kept: Buffer[] = [];
  private target: Buffer | undefined;

  constructor(private readonly announced: number) {}

  add(piece: Buffer): void {
    if (this.target !== undefined) piece.copy(this.target, this.size);
    else this.kept.push(piece);
    this.size += piece.length;
    if (
      this.target === undefined &&
      this.size < this.announced &&
      this.size * PART_OF_PROMISE >= this.announced
    ) {
      this.target = Buffer.allocUnsafeSlow(this.announced);
      let at = 0;
      for (const kept of this.kept) at += kept.copy(this.target, at);
      this.kept = [];
    }
  }

  whole(): Buffer {
    if (this.target !== undefined) return this.target;
    return this.kept.length === 1 ? (this.kept[0] as Buffer) : Buffer.concat(this.kept, this.size);
  }
}

function tooLarge(limit: number): HttpError {
  return new HttpError('payload_too_large', `The body is larger than the limit of ${limit} bytes.`);
}

/**
 * Reads and drops what the client still sends after an early reply (401, 413): cutting at once would reset the
 * connection before the client has read the reply, and some clients then send everything again. Bounded.
 */
export function discardBody(request: IncomingMessage): void {
  if (request.complete || request.destroyed) return;
  let size = 0;
  const timer = setTimeout(() => request.socket.destroy(), DISCARD_MS);
  timer.unref();
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > DISCARD_BYTES) request.socket.destroy();
  });
  request.on('close', () => clearTimeout(timer));
  request.on('end', () => clearTimeout(timer));
  request.on('error', () => clearTimeout(timer));
  request.resume();
}

/**
 * The body as a JSON value; `undefined` when it is empty or blank.
 * @throws HttpError `invalid_json`
 */
export function parseJson(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  if (!isUtf8(body)) throw new HttpError('invalid_json', 'The body is not valid UTF-8.');
  const text = body.toString('utf8');
  if (text.length < 64 && text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new HttpError('invalid_json', `The body is not valid JSON${position(cause)}.`, { cause });
  }
}

// V8's message quotes the body, which may hold a secret or be huge; only the position is passed on
function position(error: unknown): string {
  const match = /position (\d+)/.exec(error instanceof Error ? error.message : '');
  return match === null ? '' : ` (at character ${match[1]})`;
}

/**
 * `parseJson` for a body of any size within its limit: a large one is parsed in slices, so that the loop is never held up.
 * @returns a promise for a large body only
 * @throws HttpError `invalid_json`; `invalid_request` for more than `JSON_BOUNDS`
 */
export function parseJsonBody(body: Buffer): unknown {
  return body.length <= WHOLE_BYTES ? parseJson(body) : parseLarge(body);
}

async function parseLarge(body: Buffer): Promise<unknown> {
  try {
    return await inSlices(parseInPieces(body));
  } catch (error) {
    throw jsonError(error);
  }
}

/** What is answered for a problem of `parseInPieces`; other errors as they are. */
export function jsonError(error: unknown): unknown {
  if (!(error instanceof JsonProblem)) return error;
  const { message, at } = error;
  if (at !== undefined)
    return new HttpError('invalid_json', `The body is ${message} (near byte ${at}).`, { cause: error });
  if (message.startsWith('not '))
    return new HttpError('invalid_json', `The body is ${message}.`, { cause: error });
  return new HttpError('invalid_request', `The body holds ${message}.`, { cause: error });
}
