import { createHash, timingSafeEqual } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { unlink } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { HttpError, toHttpError } from '../../../http/errors.js';
import { type Deadline, deadlineOf } from '../../../lib/deadline.js';
import type { Logger } from '../../../lib/logger.js';
import type { Consumed } from '../group/consumer-instance.js';
import { LineBody } from './line-body.js';
import {
  ARRIVED,
  COUNT_HEADER,
  DELIVERY_HEADER,
  errorBody,
  ID_HEADER,
  JOINED_HEADER,
  type ListReply,
  type PeerMessage,
  type PeerRequest,
  type Pong,
} from './peer-protocol.js';

/** What a gateway does for others. */
export interface PeerService {
  pong(): Pong;
  /** `id` has asked, so it lives. */
  met(id: string): void;
  /** @param end aborts when the asker is gone, or its time */
  consume(message: PeerMessage, end: AbortSignal): Promise<Consumed>;
  commit(message: PeerMessage, end: AbortSignal): Promise<void>;
  remove(message: PeerMessage, end: AbortSignal): Promise<void>;
  yield(message: PeerMessage, end: AbortSignal): Promise<void>;
  takeBack(message: PeerMessage, end: AbortSignal): Promise<void>;
  list(message: PeerMessage, end: AbortSignal): Promise<ListReply>;
}

/** Where to listen: host and port, or the path of a Unix socket. */
export type PeerPlace = { readonly host: string; readonly port: number } | { readonly path: string };

/** At a stop, clients get so long to take the rest of their records, in ms. */
const STOP_MS = 3_000;
/** Longest wait for the word that records arrived, in ms: their asker may have died without a sign. */
const SETTLE_MS = 150_000;

/** What may wait for long. */
const WAITS: ReadonlySet<PeerRequest['operation']> = new Set(['consume', 'commit']);

/** Answers the other gateways. */
export class PeerServer {
  private readonly server: Server;
  private readonly secret: Buffer;
  private readonly stopping = new AbortController();

  constructor(
    secret: string,
    private readonly service: PeerService,
    private readonly log: Logger,
  ) {
    this.secret = digest(`Bearer ${secret}`);
    // every request listens to it
    setMaxListeners(0, this.stopping.signal);
    this.server = createServer({ keepAliveTimeout: 0, requestTimeout: 0 }, (request, response) => {
      this.serve(request, response).catch((error: unknown) => this.refuse(response, toHttpError(error)));
    });
    this.server.on('clientError', (_error, socket) => socket.destroy());
  }

  /** @throws EADDRINUSE and the like */
  async listen(place: PeerPlace): Promise<void> {
    // left by a process that was killed; nobody else has this name
    if ('path' in place) await unlink(place.path).catch(() => {});
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject);
      // not shared with other workers of node:cluster where it is this one's own
      this.server.listen({ ...place, exclusive: 'path' in place }, () => {
        this.server.off('error', reject);
        this.server.on('error', (err) => this.log.warn({ err }, 'peer server'));
        resolve();
      });
    });
  }

  /** What waits is answered with what it has. */
  leave(): void {
    this.stopping.abort();
  }

  async close(): Promise<void> {
    this.leave();
    const closed = new Promise((resolve) => this.server.close(resolve));
    const idle = setInterval(() => this.server.closeIdleConnections(), 50);
    const cut = setTimeout(() => this.server.closeAllConnections(), STOP_MS);
    await closed;
    clearInterval(idle);
    clearTimeout(cut);
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!timingSafeEqual(digest(request.headers.authorization ?? ''), this.secret))
      throw new HttpError('unauthorized', 'This gateway has another peer secret.');
    if (request.url === '/ping') {
      this.service.met(String(request.headers[ID_HEADER]));
      send(response, JSON.stringify(this.service.pong()));
      return;
    }
    const body = new LineBody(request);
    const message = JSON.parse(await body.line()) as PeerMessage;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const { operation } = message.request;
    const waitMs = message.request.operation === 'consume' ? message.request.waitMs : undefined;
    // what comes after it is refused, or handed on
    const isEnding = WAITS.has(operation) && !this.stopping.signal.aborted;
    const end = deadlineOf(waitMs, gone.signal, ...(isEnding ? [this.stopping.signal] : []));
    try {
      if (operation === 'consume') await this.serveConsume(message, end, body, response);
      else send(response, await this.answer(message, end.signal));
    } finally {
      end.release();
    }
  }

  private async answer(message: PeerMessage, end: AbortSignal): Promise<string> {
    const { operation } = message.request;
    if (operation === 'list') return JSON.stringify(await this.service.list(message, end));
    if (operation === 'commit') await this.service.commit(message, end);
    else if (operation === 'yield') await this.service.yield(message, end);
    else if (operation === 'takeBack') await this.service.takeBack(message, end);
    else await this.service.remove(message, end);
    return 'null';
  }

  private async serveConsume(
    message: PeerMessage,
    end: Deadline,
    body: LineBody,
    response: ServerResponse,
  ): Promise<void> {
    const consumed = await this.service.consume(message, end.signal);
    const word = deadlineOf(SETTLE_MS);
    try {
      send(response, consumed.messages, {
        [JOINED_HEADER]: consumed.isJoined ? '1' : '0',
        [COUNT_HEADER]: String(consumed.count),
        ...(consumed.delivery === undefined ? {} : { [DELIVERY_HEADER]: consumed.delivery }),
      });
      consumed.settle((await body.rest(word.signal)) === ARRIVED);
    } catch (error) {
      consumed.settle(false);
      throw error;
    } finally {
      word.release();
    }
  }

  private refuse(response: ServerResponse, error: HttpError): void {
    if (response.headersSent) response.destroy();
    else send(response, errorBody(error), {}, error.status);
  }
}

function send(
  response: ServerResponse,
  text: string | Buffer,
  headers: Record<string, string> = {},
  status = 200,
): void {
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
