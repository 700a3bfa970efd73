import { createHash, timingSafeEqual } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { unlink } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { HttpError, toHttpError } from '../../../http/errors.js';
import { type Deadline, deadlineOf } from '../../../lib/deadline.js';
import type { Logger } from '../../../lib/logger.js';
import type { Consumed } from '../consumer-instance.js';
import {
  ARRIVED,
  COUNT_HEADER,
  errorBody,
  JOINED_HEADER,
  type ListReply,
  type PeerMessage,
  type Pong,
} from './peer-protocol.js';

/** What a gateway does for others. */
export interface PeerService {
  pong(): Pong;
  /** @param end aborts when the asker is gone, or its time */
  consume(message: PeerMessage, end: AbortSignal): Promise<Consumed>;
  commit(message: PeerMessage, end: AbortSignal): Promise<void>;
  remove(message: PeerMessage, end: AbortSignal): Promise<void>;
  list(message: PeerMessage, end: AbortSignal): Promise<ListReply>;
}

/** Where to listen: host and port, or the path of a Unix socket. */
export type PeerPlace = { readonly host: string; readonly port: number } | { readonly path: string };

/** Largest request; commits may list thousands of partitions. */
const REQUEST_BYTES = 16 * 1024 * 1024;
/** At a stop, clients get so long to take the rest of their records, in ms. */
const STOP_MS = 3_000;
/** Longest wait for the word that records arrived, in ms: their asker may have died without a sign. */
const SETTLE_MS = 150_000;

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
  async close(): Promise<void> {
    this.stopping.abort();
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
      send(response, JSON.stringify(this.service.pong()));
      return;
    }
    const body = new LineBody(request);
    const message = JSON.parse(await body.line()) as PeerMessage;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const { operation } = message.request;
    const waitMs = message.request.operation === 'consume' ? message.request.waitMs : undefined;
    const end = deadlineOf(waitMs, gone.signal, this.stopping.signal);
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

/** A body whose first line is there long before its end. */
class LineBody {
  private text = '';
  private wake: () => void = () => {};
  private isOver = false;

  constructor(private readonly request: IncomingMessage) {
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => {
      this.text += chunk;
      if (this.text.length > REQUEST_BYTES) request.destroy();
      this.wake();
    });
    const over = () => {
      this.isOver = true;
      this.wake();
    };
    request.on('end', over).on('close', over).on('error', over);
  }

  async line(): Promise<string> {
    while (!this.text.includes('\n') && !this.isOver) await this.change();
    const end = this.text.indexOf('\n');
    if (end < 0) throw new HttpError('invalid_request', 'The request has no line.');
    const line = this.text.slice(0, end);
    this.text = this.text.slice(end + 1);
    return line;
  }

  /** What follows, when it has ended; nothing of a body that was broken off. */
  async rest(until: AbortSignal): Promise<string> {
    const give = () => this.wake();
    until.addEventListener('abort', give);
    while (!this.isOver && !until.aborted) await this.change();
    until.removeEventListener('abort', give);
    return this.request.complete ? this.text : '';
  }

  private change(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
