import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { HttpError } from './errors.js';
import type { Exchange } from './exchange.js';
import type { RouteContext } from './route.js';

/** A reply of any length, written piece by piece as its reader takes it. What fails after the first piece cuts the connection. */
export class Pieces {
  constructor(
    readonly contentType: string,
    readonly pieces: AsyncIterable<string>,
  ) {}
}

/** How a route takes a body of any length instead of a JSON one, where a request's headers ask for it. */
export interface BodyFlow<Deps> {
  takes(headers: IncomingHttpHeaders): boolean;
  /** `body` is read as fast as it is consumed; each piece that arrives begins the request's deadline anew. */
  readonly handle: (
    input: { readonly params: never; readonly body: AsyncIterable<Buffer> },
    context: RouteContext,
    deps: Deps,
  ) => Promise<unknown>;
}

/** The body as it arrives. The limits for whole bodies do not hold for it; silence while a piece is awaited still ends it. */
export async function* bodyPieces(
  request: IncomingMessage,
  exchange: Exchange,
  timeoutMs: number,
): AsyncGenerator<Buffer> {
  exchange.isUnbounded = true;
  // the request must outlive its reader: the reply goes out on the same connection
  const chunks = request.iterator({ destroyOnReturn: false });
  for (;;) {
    exchange.bodyProgress();
    const { value, done } = await chunks.next().catch((cause: unknown) => {
      throw new HttpError('client_gone', undefined, { cause });
    });
    exchange.bodyDone();
    if (done) return;
    exchange.limitTo(timeoutMs);
    yield value as Buffer;
  }
}

/** Sends a reply in pieces. An error before the first one is thrown, and answered as any other. */
export async function sendPieces(exchange: Exchange, { contentType, pieces }: Pieces): Promise<void> {
  const iterator = pieces[Symbol.asyncIterator]();
  let next = await iterator.next();
  const response = exchange.beginPieces(contentType);
  try {
    if (response === undefined) return;
    while (!next.done && !response.destroyed) {
      if (!response.write(next.value)) await drained(response);
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
