import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from '../../lib/logger.js';
import type { Span } from '../../lib/traces/span.js';
import type { Tracer } from '../../lib/traces/tracer.js';
import type { AuditKind } from '../audit.js';
import { discardBody } from '../body.js';
import { brokenBody, HttpError, lateBody, noRoomForReply } from '../errors.js';
import type { HeadBlockResponse } from '../head/head-block.js';
import type { RawStream } from '../raw-stream.js';
import type { Principal, RouteContext } from '../route.js';
import type { HttpSettings } from '../settings.js';
import type { ClientAddress } from './client-address.js';
import { LateAbort } from './late-abort.js';
import { OpenStream, STREAM_HEADERS, type StreamCore } from './open-stream.js';
import { OverListeners } from './over-listeners.js';
import { type Packing, SMALLEST_PACKED } from './packing.js';
import { SMALL_REPLY } from './reply-budget.js';

/** Content type of what is answered unless a route says another. */
export const JSON_TYPE = 'application/json; charset=utf-8';

/** What exchanges share and report to. */
export interface ExchangeCore extends StreamCore {
  readonly settings: StreamCore['settings'] & Pick<HttpSettings, 'bodyIdleTimeoutMs'>;
  /** Readiness is off and replies ask the client to close its connection. */
  readonly stopping: boolean;
  readonly stopSignal: AbortSignal;
  readonly packing: Packing;
  /** Where traces are wanted. */
  readonly tracer: Tracer | undefined;
  readonly clientAddress: ClientAddress;
  nextRequestId(fromClient: string | string[] | undefined): string;
  /** The header lines that a reply begins with, each with its CR LF. */
  headLines(
    request: IncomingMessage,
    requestId: string,
    contentType: string | undefined,
    block?: string,
  ): string;
  opened(exchange: Exchange): void;
  closed(exchange: Exchange, status: number, seconds: number): void;
  /** Writes down a call that belongs into the audit log and is over. */
  audit(exchange: Exchange, status: number): void;
}

/** What is sent of a file; 304 has no body. */
export interface FileReply {
  readonly status: 200 | 304;
  readonly contentType: string;
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/** Of a request whose client has gone before it was answered, as nginx has it. */
const CLIENT_LEFT = 499;

/** A call that belongs into the audit log. */
export interface AuditedCall {
  readonly kind: AuditKind;
  /** Node forgets the address with the connection, so it is asked for now. */
  readonly from: string | null;
  readonly target: Readonly<Record<string, string>>;
}

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
  /** Of its trace, where that is taken. */
  readonly span: Span | undefined;
  /** Where the core keeps it while it is open. */
  place = -1;
  /** Its body may take as long as it keeps arriving. */
  isUnbounded = false;
  replyBytes: number | null = null;
  /** Go out with whatever reply it gets. */
  moreHeaders: Readonly<Record<string, string>> | undefined;
  /** What the audit log is to tell of it. */
  audited: AuditedCall | undefined;
  private readonly startedAt: number;
  private stream: OpenStream | undefined;
  private isRevoked = false;
  private deadline = Number.POSITIVE_INFINITY;
  private readingSince = 0;
  private readonly ended = new LateAbort<HttpError>();
  private answered = false;
  /** Its reply counts as waiting for the client. */
  private giveRoom: (() => void) | undefined;
  private watched = false;
  private over: boolean | undefined;
  private overListeners: OverListeners | undefined;

  constructor(
    private readonly core: ExchangeCore,
    readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    /** Answers an error in the shape of the contract that the request belongs to. */
    private readonly sendError: (exchange: Exchange, error: HttpError) => void,
  ) {
    this.requestId = core.nextRequestId(request.headers['x-request-id']);
    this.startedAt = core.now();
    this.span = core.tracer?.root('request', 'server', request.headers.traceparent);
    core.opened(this);
    (response as ExchangeResponse).exchange = this;
    response.on('close', closeExchange);
  }

  get signal(): AbortSignal {
    return this.ended.signal;
  }

  get clientAddress(): string | null {
    return this.core.clientAddress(this.request);
  }

  get durationMs(): number {
    return this.core.now() - this.startedAt;
  }

  get stopping(): AbortSignal {
    return this.core.stopSignal;
  }

  get log(): Logger {
    return this.core.log;
  }

  onOver(listener: (sent: boolean) => void, onReset?: () => void): void {
    if (this.over !== undefined) {
      listener(this.over);
      return;
    }
    this.overListeners ??= new OverListeners(this.request, this.response);
    this.overListeners.add(listener, onReset);
  }

  isOn(socket: Socket): boolean {
    return this.request.socket === socket;
  }

  /** Its connection can bring no further bytes: a body that is not complete never will be. @param late it took too long */
  inputEnded(late: boolean): void {
    if (this.stream !== undefined) this.cut();
    if (this.request.complete) return;
    this.fail(late ? lateBody() : brokenBody());
  }

  /** True once a reply went out or the client is gone: nothing more can be sent. */
  get isOver(): boolean {
    return this.answered || this.ended.reason !== undefined;
  }

  limitTo(timeoutMs: number): void {
    this.deadline = this.core.now() + timeoutMs;
  }

  /**
   * Resolves when the replies before it on its connection are out, or nothing can be sent any more; its deadline rests
   * meanwhile. Of a reply that is made piece by piece nothing need be there before.
   */
  async turn(): Promise<void> {
    const { response, core } = this;
    if (response.socket !== null || this.isOver) return;
    const leftMs = this.deadline - core.now();
    this.deadline = Number.POSITIVE_INFINITY;
    await new Promise<void>((resolve) => {
      // Node's own word for it (node:_http_server, `assignSocket`)
      response.once('socket', () => resolve());
      this.onOver(() => resolve());
    });
    this.limitTo(leftMs);
  }

  audit(kind: AuditKind, target: Readonly<Record<string, string>>): void {
    this.audited = { kind, from: this.clientAddress, target: { ...this.audited?.target, ...target } };
    // its client has left before it was known what it is; it is done all the same
    if (this.over !== undefined) this.core.audit(this, CLIENT_LEFT);
  }

  /** The body is being read; every chunk calls it again, `bodyDone` ends it. */
  bodyProgress(): void {
    this.readingSince = this.core.now();
  }

  bodyDone(): void {
    this.readingSince = 0;
  }

  /**
   * Called by the core's sweep: ends an exchange whose body stalls, whose deadline has passed or whose reply nobody reads.
   * @param stoodMs since the last sweep the loop stood still for so long: what the client has sent meanwhile is not read yet
   */
  expire(now: number, stoodMs: number): void {
    const { bodyIdleTimeoutMs, replyIdleTimeoutMs } = this.core.settings;
    // Node tells nothing of a response that still waited behind another's when their connection broke
    if (this.response.socket === null && this.request.socket.destroyed) this.closed();
    else if (this.stream !== undefined) this.stream.expire(now);
    else if (this.answered && !this.watched) this.watched = limitUnread(this.response, replyIdleTimeoutMs);
    if (this.isOver) return;
    if (this.readingSince > 0) this.readingSince += stoodMs;
    // nothing can come while replies before it keep its connection from being read
    if (this.readingSince > 0 && this.request.socket.isPaused()) this.readingSince = now;
    if (this.readingSince > 0 && now - this.readingSince > bodyIdleTimeoutMs) {
      this.fail(lateBody());
    } else if (now > this.deadline) {
      this.fail(new HttpError('timeout'));
    }
  }

  /** Answers with `error` and aborts whatever still works for this request. */
  fail(error: HttpError): void {
    if (this.isOver) return;
    this.sendError(this, error);
    this.ended.abort(error);
  }

  /**
   * Sends a complete reply in one write; a second call does nothing.
   * A large one for which there is no room becomes an error.
   * @param headers name, value, name, value ... beside the constant ones, Content-Type and Content-Length
   * @param hasChangedData whether it cannot be had again
   */
  send(
    status: number,
    contentType: string,
    body: string | Buffer,
    headers?: Readonly<Record<string, string>>,
    hasChangedData = false,
  ): void {
    if (this.isOver) return;
    const { request } = this;
    const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
    if (length > SMALL_REPLY && request.method !== 'HEAD') {
      this.giveRoom = this.core.replies.take(request.socket, this.principal, length, hasChangedData);
      if (this.giveRoom === undefined) {
        this.fail(noRoomForReply(hasChangedData));
        return;
      }
    }
    if (length >= SMALLEST_PACKED && headers?.Vary === undefined && this.core.packing.isFor(length))
      this.sendPacked(status, contentType, body, { ...headers, Vary: 'Accept-Encoding' });
    else this.sendWhole(status, contentType, body, length, headers);
  }

  private sendWhole(
    status: number,
    contentType: string,
    body: string | Buffer,
    length: number,
    headers?: Readonly<Record<string, string>>,
  ): void {
    this.replyBytes = length;
    this.writeHead(status, contentType, ['Content-Length', String(length)], headers);
    this.response.end(body);
    if (!this.request.complete) discardBody(this.request);
  }

  /** The same, packed as the client takes it. */
  private sendPacked(
    status: number,
    contentType: string,
    body: string | Buffer,
    headers: Readonly<Record<string, string>>,
  ): void {
    const { packing } = this.core;
    const coding = this.request.method === 'HEAD' ? undefined : packing.codingFor(this.request);
    const asItIs = () => this.sendWhole(status, contentType, body, Buffer.byteLength(body), headers);
    if (coding === undefined) {
      asItIs();
      return;
    }
    // from now on no deadline can put an error in its place
    this.answered = true;
    const send = (packed: Buffer | undefined) => {
      if (this.over !== undefined) return;
      if (packed === undefined) asItIs();
      else
        this.sendWhole(status, contentType, packed, packed.length, {
          ...headers,
          'Content-Encoding': coding,
        });
    };
    packing.pack(body, coding).then(send, () => send(undefined));
  }

  /**
   * Sends a page or a file of the gateway's own.
   * @param headBlock the lines that its head begins with, instead of those of every reply
   */
  sendFile(file: FileReply, headBlock: string): void {
    if (this.isOver) return;
    const { status, contentType, body, headers } = file;
    const length = status === 304 ? [] : ['Content-Length', String(body.length)];
    this.replyBytes = body.length;
    this.writeHead(status, contentType, length, headers, headBlock);
    this.response.end(status === 304 ? undefined : body);
    if (!this.request.complete) discardBody(this.request);
  }

  /** A reply without a body, such as 204, which must have no Content-Length (RFC 9110, 8.6). */
  sendEmpty(status: number, headers: Readonly<Record<string, string>>): void {
    if (this.isOver) return;
    this.writeHead(status, undefined, [], headers);
    this.response.end();
    if (!this.request.complete) discardBody(this.request);
  }

  /** A page or a part of one: with the headers that middleware has set on the response, without those of an API's reply. */
  sendPage(status: number, headers: Readonly<Record<string, string>>, body?: Buffer): void {
    if (this.isOver) return;
    this.answered = true;
    const { core, request, response, requestId } = this;
    const closing = core.stopping ? { Connection: 'close' } : {};
    response.writeHead(status, { ...headers, ...closing, 'X-Request-Id': requestId });
    response.end(body);
    if (!request.complete) discardBody(request);
  }

  /** Sends the head at once and lets `reply` write what follows; without effect after another reply. */
  openStream(reply: RawStream): void {
    if (this.isOver) return;
    if (this.core.stopping) this.fail(new HttpError('stopping'));
    else if (this.isRevoked) this.fail(new HttpError('unauthorized'));
    else {
      this.writeHead(reply.status, reply.contentType, [...STREAM_HEADERS], reply.headers);
      if (this.request.method === 'HEAD') this.response.end();
      else {
        this.stream = new OpenStream(this, this.core, this.response, reply.heartbeat);
        this.stream.begin(reply);
      }
    }
  }

  /** The gateway stops: a stream ends instead of being waited for. */
  endStream(): void {
    this.stream?.endSoon();
  }

  /** Breaks the connection. */
  cut(): void {
    this.request.socket.destroy();
  }

  private writeHead(
    status: number,
    contentType: string | undefined,
    list: string[],
    headers: Readonly<Record<string, string>> | undefined,
    headBlock?: string,
  ): void {
    this.answered = true;
    const { core, request, response } = this;
    (response as HeadBlockResponse).headBlock = core.headLines(
      request,
      this.requestId,
      contentType,
      headBlock,
    );
    if (headers !== undefined) for (const name in headers) list.push(name, headers[name] as string);
    const { moreHeaders } = this;
    if (moreHeaders !== undefined)
      for (const name in moreHeaders) list.push(name, moreHeaders[name] as string);
    if (core.stopping && headers?.Connection === undefined) list.push('Connection', 'close');
    response.writeHead(status, list);
  }

  /** Its token is no longer valid: what goes on without end does not; a call that was let in is answered. */
  revoke(): void {
    this.isRevoked = true;
    if (this.stream !== undefined) this.stream.endSoon();
    else if (this.isUnbounded) this.fail(new HttpError('unauthorized'));
  }

  /** Sends the head of a reply whose pieces the caller writes; `undefined` when nothing can be sent. */
  beginPieces(contentType: string): ServerResponse | undefined {
    if (this.isOver) return undefined;
    this.writeHead(200, contentType, [], undefined);
    return this.response;
  }

  /** The response is finished, or its connection is gone. */
  closed(): void {
    if (this.over !== undefined) return;
    this.giveRoom?.();
    if (!this.answered || this.stream?.close() === false) this.ended.abort(new HttpError('client_gone'));
    this.over = false;
    this.over = this.overListeners?.tell(this.ended.reason === undefined) ?? false;
    const seconds = ((this.stream?.openedAt ?? this.core.now()) - this.startedAt) / 1_000;
    const status = this.answered && this.response.headersSent ? this.response.statusCode : CLIENT_LEFT;
    if (this.span !== undefined) endSpan(this.span, this, status);
    this.core.closed(this, status, seconds);
  }
}

/** As OpenTelemetry's conventions name it, without path and query, which hold keys and values. */
function endSpan(
  span: Span,
  { request, operationId, requestId, clientAddress }: Exchange,
  status: number,
): void {
  span.name = operationId;
  Object.assign(span.attributes, {
    'http.request.method': request.method ?? '',
    'http.response.status_code': status,
    'portico.operation': operationId,
    'portico.request_id': requestId,
    ...(clientAddress === null ? {} : { 'client.address': clientAddress }),
  });
  if (status >= 500) span.error = String(status);
  span.end();
}

/**
 * Lets a complete reply break its connection when the client takes nothing of it for `timeoutMs`: the socket's timer
 * begins anew whenever it took something.
 * @returns false when there is nothing to watch yet: a reply behind another's has no socket
 */
function limitUnread(response: ServerResponse, timeoutMs: number): boolean {
  const { socket } = response;
  if (socket === null || response.writableFinished) return false;
  socket.setTimeout(timeoutMs);
  // before Node's own listener, which sets the time for idle connections
  response.prependOnceListener('finish', () => socket.setTimeout(0));
  return true;
}
