import { lookup } from 'node:dns';
import { types } from 'node:util';
import { Agent, type Dispatcher, errors, request } from 'undici';
import type { ByteBudget } from '../byte-budget.js';
import { type Deadline, deadlineOf } from '../deadline.js';
import { type ReadBody, readUpTo } from '../read-body.js';
import type { AddressGuard } from './address-guard.js';
import { ALLOW_H2, CONNECT_MS, type Ways, waysConnector } from './connector.js';
import { OutboundError } from './outbound-error.js';
import { metered, statusBefore } from './response-meter.js';

export interface OutboundRequest {
  /** `http:` or `https:`; user and password in it become Basic credentials unless `authorization` is among the headers. */
  readonly url: URL;
  readonly method: string;
  /** Names, each followed by its value, in any case; hop-by-hop ones must not be among them (see `isTransportHeader`). */
  readonly headers: readonly string[];
  readonly body: Buffer;
  /** For the whole exchange, from the look-up of the name to the last byte. */
  readonly timeoutMs: number;
  /** Response bytes that are kept; the rest is not read. */
  readonly maxBodyBytes: number;
  /** Ends the exchange early. */
  readonly signal: AbortSignal;
  /** Shared by those whose responses may be many and large at once; a response that finds none left is cut. */
  readonly budget?: ByteBudget;
}

export interface OutboundResponse extends ReadBody {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string[]>>;
}

/** Of a response whose headers are longer only the status is kept, in bytes. Destinations that set many cookies pass 16 KiB, undici's default. */
const MAX_HEADER_BYTES = 256 * 1024;

/**
 * A pooled, keep-alive HTTP client for destinations named by others: it connects only to addresses that `guard` passes,
 * checked on the very address that is connected to (so a name that changes between two look-ups gains nothing), and
 * follows no redirect.
 */
export class Outbound {
  private readonly agent: Agent;
  private readonly dispatcher: Dispatcher;

  /** @param resolve an argument so that a test can be the name server */
  constructor(guard: AddressGuard, ways: Ways = {}, resolve: typeof lookup = lookup) {
    this.agent = new Agent({
      connect: waysConnector(guard, ways, resolve),
      // `signal` bounds the whole exchange; undici's own two timers would only cut at 300 s and cost a timer each
      headersTimeout: 0,
      bodyTimeout: 0,
      pipelining: 1,
      maxHeaderSize: MAX_HEADER_BYTES,
      allowH2: ALLOW_H2,
    });
    this.dispatcher = this.agent.compose(metered);
  }

  /** @throws OutboundError when no complete response head came */
  async send(outgoing: OutboundRequest): Promise<OutboundResponse> {
    const deadline = deadlineOf(outgoing.timeoutMs, outgoing.signal);
    try {
      const response = await request(withoutCredentials(outgoing.url), {
        dispatcher: this.dispatcher,
        method: outgoing.method as 'POST',
        headers: withCredentials(outgoing),
        body: outgoing.body.length === 0 ? null : outgoing.body,
        signal: deadline.signal,
      });
      const read = await readUpTo(response.body, outgoing.maxBodyBytes, outgoing.budget);
      return { status: response.statusCode, headers: listsOf(response.headers), ...read };
    } catch (error) {
      const status = statusBefore(error);
      // it has answered: were that a failure, it would get the message again
      if (status !== undefined)
        return { status, headers: {}, body: Buffer.alloc(0), truncated: true, release: () => undefined };
      throw translate(error, outgoing, deadline);
    } finally {
      deadline.release();
    }
  }

  /** Cuts what is still open. */
  async close(): Promise<void> {
    await this.agent.destroy();
  }
}

/**
 * Headers that belong to one connection or are computed by the client: undici throws on most of them and would let
 * `Host` be forged. `name` in lower case.
 */
export function isTransportHeader(name: string): boolean {
  return TRANSPORT_HEADERS.has(name) || name.startsWith('proxy-');
}

const TRANSPORT_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

function withoutCredentials(url: URL): URL {
  if (url.username === '' && url.password === '') return url;
  const bare = new URL(url);
  bare.username = '';
  bare.password = '';
  return bare;
}

function withCredentials({ url, headers }: OutboundRequest): string[] {
  const isGiven = (name: string, i: number) => i % 2 === 0 && name.toLowerCase() === 'authorization';
  if ((url.username === '' && url.password === '') || headers.some(isGiven)) return headers as string[];
  const pair = `${decoded(url.username)}:${decoded(url.password)}`;
  return [...headers, 'authorization', `Basic ${Buffer.from(pair).toString('base64')}`];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function listsOf(headers: Record<string, string | string[] | undefined>): Record<string, string[]> {
  const lists: Record<string, string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) lists[name] = Array.isArray(value) ? value : [value];
  }
  return lists;
}

function translate(
  error: unknown,
  { timeoutMs, signal }: OutboundRequest,
  deadline: Deadline,
): OutboundError {
  if (error instanceof OutboundError) return error;
  if (signal.aborted) return new OutboundError('aborted', 'the attempt was interrupted', { cause: error });
  if (deadline.isLate || error instanceof errors.ConnectTimeoutError)
    return new OutboundError(
      'timeout',
      `no complete response within ${Math.min(timeoutMs, deadline.isLate ? timeoutMs : CONNECT_MS)} ms`,
      { cause: error },
    );
  return new OutboundError('network', describe(error), { cause: error });
}

/** A connection to several addresses fails with one error that holds the others. */
function describe(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return describe(error.errors[0]);
  const code = (error as { code?: unknown }).code;
  const message = types.isNativeError(error) ? error.message : String(error);
  return typeof code === 'string' && !message.includes(code)
    ? `${message} (${code})`
    : message || 'the request failed';
}
