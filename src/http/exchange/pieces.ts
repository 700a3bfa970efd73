import type { IncomingMessage } from 'node:http';
import { Pace } from '../../lib/slices.js';
import { HttpError } from '../errors.js';
import type { Pieces } from '../route.js';
import type { Exchange } from './exchange.js';

/** The body as it arrives. The limits for whole bodies do not hold for it; silence while a piece is awaited still ends it. */
export async function* bodyPieces(
  request: IncomingMessage,
  exchange: Exchange,
  timeoutMs: number,
): AsyncGenerator<Buffer> {
  exchange.isUnbounded = true;
  const reader = new PieceReader(request);
  try {
    for (;;) {
      // the backend owes nothing while the client does
      exchange.limitTo(Number.POSITIVE_INFINITY);
      exchange.bodyProgress();
      const piece = await reader.next();
      exchange.bodyDone();
      exchange.limitTo(timeoutMs);
      if (piece === undefined) return;
      yield piece;
    }
  } finally {
    reader.release();
  }
}

/** Takes one piece at a time and holds the connection back meanwhile. Unlike a stream's own iterator it leaves the request alive. */
class PieceReader {
  private readonly pieces: Buffer[] = [];
  private state: 'open' | 'ended' | 'gone' = 'open';
  private wake: (() => void) | undefined;

  constructor(private readonly request: IncomingMessage) {
    request.on('data', this.onData).on('end', this.onEnd).on('close', this.onGone).on('error', this.onGone);
    request.pause();
  }

  /** @returns `undefined` at the end @throws HttpError `client_gone` */
  async next(): Promise<Buffer | undefined> {
    for (;;) {
      const piece = this.pieces.shift();
      if (piece !== undefined) return piece;
      if (this.state === 'ended') return undefined;
      if (this.state === 'gone') throw new HttpError('client_gone');
      await new Promise<void>((resolve) => {
        this.wake = resolve;
        this.request.resume();
      });
    }
  }

  release(): void {
    const { request } = this;
    request
      .off('data', this.onData)
      .off('end', this.onEnd)
      .off('close', this.onGone)
      .off('error', this.onGone);
  }

  private readonly onData = (piece: Buffer) => {
    this.pieces.push(piece);
    this.request.pause();
    this.wake?.();
  };

  private readonly onEnd = () => {
    this.state = 'ended';
    this.wake?.();
  };

  private readonly onGone = () => {
    if (this.state === 'open') this.state = 'gone';
    this.wake?.();
  };
}

/**
 * Sends a reply in pieces. An error before the first one is thrown, and answered as any other. It rests by the clock: what a
 * fast reader takes at once is written, and its `drain` told, without a turn of the loop.
 */
export async function sendPieces(exchange: Exchange, { contentType, pieces }: Pieces): Promise<void> {
  // 2,000 lists that were asked for at once on one connection would each hold what comes first of it
  await exchange.turn();
  const iterator = pieces[Symbol.asyncIterator]();
  if (exchange.isOver) {
    await iterator.return?.();
    return;
  }
  let next = await iterator.next();
  const response = exchange.beginPieces(contentType);
  try {
    if (response === undefined) return;
    const pace = new Pace();
    while (!next.done && !response.destroyed) {
      if (!response.write(next.value)) await drained(response);
      await pace.rest();
      next = await iterator.next();
    }
    response.end();
  } catch (error) {
    exchange.log.warn({ err: error, requestId: exchange.requestId }, 'a reply broke off');
    response?.destroy();
  } finally {
    await iterator.return?.();
  }
}

function drained(response: NodeJS.EventEmitter): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      response.off('drain', go).off('close', go);
      resolve();
    };
    response.on('drain', go).on('close', go);
  });
}
