import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, type Socket, Server as TcpServer } from 'node:net';
import { createSecureContext, type TlsOptions, type Server as TlsServer } from 'node:tls';
import { type ErrorCode, HttpError } from '../errors.js';
import { JSON_TYPE } from '../exchange/exchange.js';
import type { HttpCore } from '../exchange/http-core.js';
import type { HttpSettings } from '../settings.js';
import type { App } from './app.js';
import { inTurns, requestsOn } from './bursts.js';
import { certificateEnd, type ServerTls, serverTls } from './server-tls.js';

/** A new request on a kept connection may already be on its way when a stop begins: idle ones are closed only after so many ms. */
const IDLE_GRACE_MS = 100;
const DRAIN_EVERY_MS = 50;

export interface ListeningServer {
  readonly port: number;
  /** Stops accepting, lets requests in flight end, closes idle connections; what is left after `capMs` is cut. */
  drain(capMs: number): Promise<void>;
  /** When its certificate ends, in s since 1970; `undefined` without TLS. */
  readonly certificateEnd: number | undefined;
  /** Reads the files of TLS again, for the connections to come. @throws when they are not usable; nothing has changed then */
  renew(): void;
}

/**
 * Serves `app` on `host:port` (0: a free one), over TLS where the settings say so.
 * @param isForOperators the pages of operations alone
 * @throws EADDRINUSE, EACCES and the like, with the address in the message
 */
export async function listen(
  app: App,
  host: string,
  port: number,
  core: HttpCore,
  isForOperators = false,
): Promise<ListeningServer> {
  const tls = serverTls(core.settings, isForOperators);
  const handle = inTurns(app.handle);
  const options = optionsOf(app, core.settings);
  const server =
    tls === undefined ? createServer(options, handle) : createTlsServer({ ...options, ...tls }, handle);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // Node reports this once and leaves the connection as it is
    const late = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
    if (late && core.isUnbounded(socket)) return;
    const end = () =>
      void core.inputEnded(socket, late).then(() => answerClientError(error, socket, app, core));
    if (late && socket.isPaused()) endWhenLate(socket, core.settings.requestTimeoutMs, end);
    else end();
  });
  // `Expect: 100-continue` is granted only when a handler reads the body, so a wrong token costs no upload
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    request.once('resume', () => {
      if (!response.headersSent) response.writeContinue();
    });
    handle(request, response);
  });
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    app.refuse(request, response, new HttpError('expectation_failed'));
  });
  // beyond it Node would drop headers, Content-Length among them; their bytes are limited as a whole
  server.maxHeadersCount = 0;
  const connections = new Set<Socket>();
  const keep = (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  };
  server.on('connection', keep);
  if (tls !== undefined) server.on('secureConnection', keep);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const renewable = certificates(server, tls, () => serverTls(core.settings, isForOperators));
  return Object.assign(renewable, {
    port: (server.address() as AddressInfo).port,
    drain: (capMs: number) => drain(server, connections, capMs),
  });
}

function certificates(
  server: Server,
  first: ServerTls | undefined,
  read: () => ServerTls | undefined,
): Pick<ListeningServer, 'certificateEnd' | 'renew'> {
  let tls = first;
  return {
    get certificateEnd() {
      return tls === undefined ? undefined : certificateEnd(tls.cert);
    },
    renew: () => {
      const changed = tls === undefined ? undefined : read();
      if (changed === undefined) return;
      secure(server as unknown as TlsServer, changed);
      tls = changed;
    },
  };
}

function optionsOf(
  app: App,
  settings: HttpSettings,
): ServerOptions<typeof IncomingMessage, typeof ServerResponse<IncomingMessage>> {
  return {
    IncomingMessage: app.IncomingMessage,
    ServerResponse: app.ServerResponse as typeof ServerResponse<IncomingMessage>,
    maxHeaderSize: settings.maxHeaderBytes,
    requestTimeout: settings.requestTimeoutMs,
    headersTimeout: Math.min(60_000, settings.requestTimeoutMs),
    keepAliveTimeout: settings.keepAliveTimeoutMs,
    connectionsCheckingInterval: 1_000,
    noDelay: true,
    // Node's own refusal has no body: the app has one
    requireHostHeader: false,
  };
}

/** Connections that there are go on with what they began with. */
function secure(server: TlsServer, options: TlsOptions): void {
  // of options that it cannot use, the server has taken some by then
  createSecureContext(options);
  server.setSecureContext(options);
}

/**
 * A request cannot come while replies before it keep its connection from being read, and Node does not say a second time that
 * it is late. From then on it has its whole time again.
 */
function endWhenLate(socket: Socket, timeoutMs: number, end: () => void): void {
  const before = requestsOn(socket);
  const look = () => {
    if (socket.destroyed) return;
    if (requestsOn(socket) === before && !socket.isPaused()) end();
    else endWhenLate(socket, timeoutMs, end);
  };
  const timer = setTimeout(look, timeoutMs);
  socket.once('close', () => clearTimeout(timer));
}

async function drain(server: Server, connections: ReadonlySet<Socket>, capMs: number): Promise<void> {
  const startedAt = performance.now();
  await new Promise<void>((resolve) => {
    const sweep = setInterval(() => {
      const elapsed = performance.now() - startedAt;
      // timers run before sockets are read: requests that have arrived meanwhile are no idle connections
      if (elapsed >= IDLE_GRACE_MS) setImmediate(() => closeIdle(server, connections));
      if (elapsed >= capMs) server.closeAllConnections();
    }, DRAIN_EVERY_MS);
    // HTTP's own close cuts idle connections at once, and with them requests that are on their way
    TcpServer.prototype.close.call(server, () => {
      clearInterval(sweep);
      server.close(); // ends Node's timer of connection checks
      resolve();
    });
  });
}

/** Node takes a connection on which nothing was ever sent for a request that has begun; clients open some in advance. */
function closeIdle(server: Server, connections: ReadonlySet<Socket>): void {
  server.closeIdleConnections();
  for (const socket of connections) if (socket.bytesRead === 0) socket.destroy();
}

/** What Node tells of a head that it cannot read. */
interface ClientError extends NodeJS.ErrnoException {
  /** The bytes that came last; mostly the whole head. */
  readonly rawPacket?: Buffer;
}

/**
 * What Node refuses before there is a request still gets a JSON reply, in the shape of the contract as far as that can be
 * told; after the replies to requests that came before it on the same connection there is none, only the end.
 */
function answerClientError(error: ClientError, socket: Socket, app: App, core: HttpCore): void {
  // others than these tell of the connection: reset, or of TLS not spoken
  const isOfHttp = /^(HPE|ERR_HTTP)_/.test(error.code ?? '');
  if (!isOfHttp || !socket.writable || socket.bytesWritten > 0) {
    socket.destroy();
    return;
  }
  const refusal = new HttpError(codeOf(error));
  const body = app.errorBody(targetIn(error.rawPacket), refusal);
  socket.end(
    `HTTP/1.1 ${refusal.status} ${REASONS[refusal.status] ?? 'Bad Request'}\r\n${core.headLines(undefined, core.nextRequestId(undefined), JSON_TYPE)}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

/** The target of the request line, where the bytes begin with one; its beginning is enough. */
function targetIn(bytes: Buffer | undefined): string | undefined {
  return /^[A-Z]+ (\/\S*)/.exec(bytes?.toString('latin1', 0, 1_024) ?? '')?.[1];
}

const REASONS: Record<number, string> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
};

function codeOf(error: NodeJS.ErrnoException): ErrorCode {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout';
  if (error.code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large';
  return 'invalid_request';
}
