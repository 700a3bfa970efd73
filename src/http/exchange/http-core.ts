import { setMaxListeners } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from '../../lib/logger.js';
import type { Tracer } from '../../lib/traces/tracer.js';
import type { AuditEntry, AuditSink } from '../audit.js';
import { Cors } from '../head/cors.js';
import { headLines } from '../head/head-block.js';
import { requestIds } from '../head/request-id.js';
import { securityHeaders } from '../head/security-headers.js';
import { AccessLog } from '../monitoring/access-log.js';
import type { Metrics } from '../monitoring/metrics.js';
import type { HttpSettings } from '../settings.js';
import { AddressLimits } from './address-limits.js';
import { type ClientAddress, clientAddress } from './client-address.js';
import type { AuditedCall, Exchange, ExchangeCore } from './exchange.js';
import { Packing } from './packing.js';
import { ReplyBudget } from './reply-budget.js';

/** How often deadlines are looked at, in ms: one timer for all requests instead of one each. */
const SWEEP_MS = 200;

/** What every request of this process shares: settings, metrics, the set of open exchanges and the sweep of their deadlines. */
export class HttpCore implements ExchangeCore {
  private readonly headBlock: string;
  /** Only when other origins are configured. */
  readonly cors: Cors | undefined;
  private accessLog: AccessLog | undefined;
  readonly nextRequestId = requestIds();
  private readonly stop = new AbortController();
  /** Each exchange knows its place. */
  private readonly open: Exchange[] = [];
  private readonly sweeper: NodeJS.Timeout;
  private sweptAt: number;
  /** How many of the open exchanges are streams. */
  streams = 0;
  readonly clientAddress: ClientAddress;
  readonly packing = new Packing(() => this.current.compression);
  /** What waits for clients. */
  readonly replies: ReplyBudget;
  /** Where calls go that the audit log is to tell. */
  auditSink: AuditSink | undefined;
  /** Only when requests of an address are limited. */
  readonly addressLimits: AddressLimits | undefined;

  constructor(
    private current: HttpSettings,
    readonly metrics: Metrics,
    readonly log: Logger,
    /** Reply headers of the services that scripts of other origins may read. */
    exposedHeaders: readonly string[] = [],
    /** Monotonic milliseconds. */
    readonly now: () => number = () => performance.now(),
    readonly tracer: Tracer | undefined = undefined,
  ) {
    this.clientAddress = clientAddress(current.trustedProxies);
    this.replies = new ReplyBudget(current.replyBufferBytes);
    const { requests, seconds } = current.addressLimit;
    this.addressLimits =
      requests === null ? undefined : new AddressLimits(requests, seconds, this.clientAddress, now);
    this.accessLog = accessLogOf(current, log);
    const { origins } = current.cors;
    this.cors = origins.length === 0 ? undefined : new Cors(origins, exposedHeaders);
    // replies depend on a token, which a shared cache does not know where it stands in the query
    this.headBlock = headLines([...securityHeaders(origins.length > 0), 'Cache-Control', 'no-store']);
    this.sweptAt = now();
    this.sweeper = setInterval(() => this.sweep(), SWEEP_MS);
    this.sweeper.unref();
    // every waiting request listens to it
    setMaxListeners(0, this.stop.signal);
    metrics.countInFlight(() => this.inFlight);
    metrics.countStreams(() => this.streams);
    metrics.countReplyBytes(() => this.replies.waiting);
  }

  get settings(): HttpSettings {
    return this.current;
  }

  /** @param settings those that differ only in what can change while requests come */
  reload(settings: HttpSettings): void {
    this.current = settings;
    this.accessLog = accessLogOf(settings, this.log);
  }

  /** Readiness is off and replies ask the client to close its connection. */
  get stopping(): boolean {
    return this.stop.signal.aborted;
  }

  get stopSignal(): AbortSignal {
    return this.stop.signal;
  }

  beginStop(): void {
    this.stop.abort();
    for (const exchange of [...this.open]) exchange.endStream();
  }

  /** Requests being worked on. Streams, which live for hours, are none of them. */
  get inFlight(): number {
    return this.open.length - this.streams;
  }

  /** The header lines that every reply begins with; all plain: an id is checked or ours, a content type comes from a route. */
  headLines(
    request: IncomingMessage | undefined,
    requestId: string,
    contentType: string | undefined,
    block = this.headBlock,
  ): string {
    const cors = this.cors === undefined ? '' : this.cors.lines(request?.headers.origin);
    const type = contentType === undefined ? '' : `Content-Type: ${contentType}\r\n`;
    return `${block}${cors}X-Request-Id: ${requestId}\r\n${type}`;
  }

  /** Whether a body on this connection may take as long as it likes. */
  isUnbounded(socket: Socket): boolean {
    return this.open.some((exchange) => exchange.isUnbounded && exchange.isOn(socket));
  }

  opened(exchange: Exchange): void {
    exchange.place = this.open.push(exchange) - 1;
    // Node forgets it with the connection unless somebody asks before
    if (this.accessLog !== undefined) void exchange.request.socket.remoteAddress;
  }

  closed(exchange: Exchange, status: number, seconds: number): void {
    this.remove(exchange);
    this.audit(exchange, status);
    this.metrics.requests.observe(exchange.operationId, status, seconds);
    this.accessLog?.write(exchange, status);
  }

  /** Writes down a call that is over, if it is of those that are. */
  audit(exchange: Exchange, status: number): void {
    if (exchange.audited !== undefined)
      this.auditSink?.record(auditEntry(exchange, exchange.audited, status));
  }

  /** Nothing more is read from this connection, because of an error or because it is late: resolves when its requests are answered. */
  async inputEnded(socket: Socket, late: boolean): Promise<void> {
    for (;;) {
      const waiting = [...this.open].filter((exchange) => exchange.isOn(socket));
      if (waiting.length === 0) return;
      for (const exchange of waiting) exchange.inputEnded(late);
      await new Promise((resolve) => setTimeout(resolve, SWEEP_MS / 4));
    }
  }

  /** Ends what tokens have open that are no longer valid. @param keys of their principals */
  endStreamsOf(keys: ReadonlySet<string>): void {
    for (const exchange of [...this.open]) if (keys.has(exchange.principal.key ?? '')) exchange.revoke();
  }

  /** Aborts what is still running; for the end of a stop whose time is up. */
  failAll(makeError: () => Parameters<Exchange['fail']>[0]): void {
    for (const exchange of [...this.open]) exchange.fail(makeError());
  }

  release(): void {
    clearInterval(this.sweeper);
  }

  /**
   * The last one takes the free place. A Set makes a new table every so many changes, and one old table that is not yet
   * collected keeps its followers and their requests alive: a third of a small request's CPU time went into that.
   */
  private remove(exchange: Exchange): void {
    const last = this.open.pop();
    if (last === undefined || last === exchange) return;
    this.open[exchange.place] = last;
    last.place = exchange.place;
  }

  private sweep(): void {
    const now = this.now();
    const stoodMs = Math.max(0, now - this.sweptAt - SWEEP_MS);
    this.sweptAt = now;
    if (this.open.length === 0) return;
    for (const exchange of [...this.open]) exchange.expire(now, stoodMs);
  }
}

function accessLogOf({ accessLog }: HttpSettings, log: Logger): AccessLog | undefined {
  return accessLog.enabled ? new AccessLog(accessLog, log) : undefined;
}

/** Characters of a name in the audit log. */
const AUDITED_LENGTH = 1_024;

function auditEntry(exchange: Exchange, { kind, from, target }: AuditedCall, status: number): AuditEntry {
  const { operationId: operation, principal, requestId } = exchange;
  const at = new Date().toISOString();
  const names = Object.entries(target).map(([name, text]) => [name, plain(text)]);
  const who = plain(principal.name);
  return { at, kind, operation, who, from, target: Object.fromEntries(names), status, requestId };
}

/** What any store takes: no NUL, no half of a character; a name may be as long as a target line. */
function plain(text: string): string {
  return text.slice(0, AUDITED_LENGTH).toWellFormed().replaceAll('\0', '\u{FFFD}');
}
