import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from '../lib/logger.js';
import { discardBody } from './body.js';
import { HttpError } from './errors.js';
import type { HeadBlockResponse } from './head-block.js';
import type { HttpCore } from './http-core.js';
import type { Principal, RouteContext } from './route.js';

const NOBODY: Principal = { name: 'nobody', access: 'read' };

/** One listener for all responses costs no closure a request. */
type ExchangeResponse = ServerResponse & { exchange: Exchange };

function closeExchange(this: ServerResponse): void {
  (this as ExchangeResponse).exchange.closed();
}

/** One request and its reply: id, deadline, abort signal, and the one place from which anything is sent. */
export class Exchange implements RouteContext {
  readonly requestId: string;
  principal: Principal = NOBODY;
  /** Label of the request in metrics; the route's operation id once that is known. */
  operationId = 'unrouted';
  /** Where the core keeps it while it is open. */
  place = -1;
  private readonly startedAt: number;
  private deadline = Number.POSITIVE_INFINITY;
  private readingSince = 0;
  private controller: AbortController | undefined;
  private ended: HttpError | undefined;
  private answered = false;
  private flushed = false;
  private watched = false;
  private over: boolean | undefined;
  private overListeners: ((sent: boolean) => void)[] | undefined;

  constructor(
    private readonly core: HttpCore,
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    /** Answers an error in the shape of the contract that the request belongs to. */
    private readonly sendError: (exchange: Exchange, error: HttpError) => void,
  ) {
    this.requestId = core.nextRequestId(request.headers['x-request-id']);
    this.startedAt = core.now();
    core.opened(this);
    (response as ExchangeResponse).exchange = this;
    response.on('close', closeExchange);
  }

  /** Made on first use: most requests end before anything would listen. */
  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.ended !== undefined) this.controller.abort(this.ended);
    }
    return this.controller.signal;
  }

  get stopping(): AbortSignal {
    return this.core.stopSignal;
  }

  get log(): Logger {
    return this.core.log;
  }

  onOver(listener: (sent: boolean) => void): void {
    if (this.over !== undefined) listener(this.over);
    else if (this.overListeners !== undefined) this.overListeners.push(listener);
    else {
      this.overListeners = [listener];
      // `writableFinished` is also true of a reply whose connection broke, and so is this event when its write failed
      this.response.once('finish', () => {
        const { socket } = this.request;
        this.flushed = !socket.destroyed && socket.errored === null;
      });
    }
  }

  isOn(socket: Socket): boolean {
    return this.request.socket === socket;
  }

  /** Its connection can bring no further bytes: a body that is not complete never will be. */
  inputEnded(): void {
    if (this.request.complete) return;
    this.fail(
      new HttpError('invalid_request', 'The body is malformed.', { headers: { Connection: 'close' } }),
    );
  }

  /** True once a reply went out or the client is gone: nothing more can be sent. */
  get isOver(): boolean {
    return this.answered || this.ended !== undefined;
  }

  /** From now the request must end within `timeoutMs`. */
  limitTo(timeoutMs: number): void {
    this.deadline = this.core.now() + timeoutMs;
  }

  /** The body is being read; every chunk calls it again, `bodyDone` ends it. */
  bodyProgress(): void {
    this.readingSince = this.core.now();
  }

  bodyDone(): void {
    this.readingSince = 0;
  }

  /** Called by the core's sweep: ends an exchange whose body stalls, whose deadline has passed or whose reply nobody reads. */
  expire(now: number): void {
    const { bodyIdleTimeoutMs, replyIdleTimeoutMs } = this.core.settings;
    if (this.answered) this.limitUnread(replyIdleTimeoutMs);
    if (this.isOver) return;
    if (this.readingSince > 0 && now - this.readingSince > bodyIdleTimeoutMs) {
      this.fail(
        new HttpError('request_timeout', 'The body did not arrive in time.', {
          headers: { Connection: 'close' },
        }),
      );
    } else if (now > this.deadline) {
      this.fail(new HttpError('timeout'));
    }
  }

  /** Answers with `error` and aborts whatever still works for this request. */
  fail(error: HttpError): void {
    if (this.isOver) return;
    this.sendError(this, error);
    this.abort(error);
  }

  /**
   * Sends a complete reply in one write; a second call does nothing.
   * @param headers name, value, name, value ... beside the constant ones, Content-Type and Content-Length
   */
  send(
    status: number,
    contentType: string,
    body: string | Buffer,
    headers?: Readonly<Record<string, string>>,
  ): void {
    if (this.isOver) return;
    this.answered = true;
    const { response, request } = this;
    const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
    // both values are plain: an id is checked or ours, a content type comes from a route
    (response as HeadBlockResponse).headBlock =
      `${this.core.headBlock}X-Request-Id: ${this.requestId}\r\nContent-Type: ${contentType}\r\n`;
    const list = ['Content-Length', String(length)];
    if (headers !== undefined) for (const name in headers) list.push(name, headers[name] as string);
    if (this.core.stopping && headers?.Connection === undefined) list.push('Connection', 'close');
    response.writeHead(status, list);
    response.end(body);
    if (!request.complete) discardBody(request);
  }

  /** The socket's timer begins anew whenever the client took something. A reply behind another's has no socket yet. */
  private limitUnread(timeoutMs: number): void {
    const { response } = this;
    const { socket } = response;
    if (this.watched || socket === null || response.writableFinished) return;
    this.watched = true;
    socket.setTimeout(timeoutMs);
    // before Node's own listener, which sets the time for idle connections
    response.prependOnceListener('finish', () => socket.setTimeout(0));
  }

  private abort(reason: HttpError): void {
    this.ended ??= reason;
    this.controller?.abort(reason);
  }

  /** The response is finished, or its connection is gone. */
  closed(): void {
    if (!this.answered) this.abort(new HttpError('client_gone'));
    this.over = this.ended === undefined && this.flushed && this.request.method !== 'HEAD';
    for (const listener of this.overListeners ?? []) listener(this.over);
    this.core.closed(this, this.operationId, this.answered ? this.response.statusCode : 499, this.startedAt);
  }
}
