import type { IncomingMessage } from 'node:http';
import { headLines } from './head-block.js';

/** The gateway's own reply headers that scripts of other origins may read. */
const EXPOSED = [
  ...['x-request-id', 'retry-after', 'allow', 'www-authenticate', 'idempotent-replayed'],
  ...['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'],
];

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';

/** How long a browser may remember a preflight's answer, in s: more than Chromium takes (2 h) is of no use. */
const MAX_AGE_S = 7_200;

/** A list of header names (RFC 9110, 5.6.1 and 5.6.2), at most as long as is sent back. */
const HEADER_NAMES = /^[\w!#$%&'*+.^`|~-]+(?: *, *[\w!#$%&'*+.^`|~-]+)*$/;
const HEADER_NAMES_LENGTH = 8_192;

/**
 * Which pages of other origins may use the gateway, by the Fetch standard's CORS protocol. Tokens travel in headers that the
 * page sets itself, so credentials of the browser (cookies) are never allowed.
 */
export class Cors {
  private readonly linesByOrigin: ReadonlyMap<string, string>;
  private readonly otherLines: string;

  /**
   * @param origins exact ones such as `https://app.example`, or `*` for all
   * @param ofServices reply headers of the services that scripts of those origins may read
   */
  constructor(origins: readonly string[], ofServices: readonly string[]) {
    const exposed = ['Access-Control-Expose-Headers', [...ofServices, ...EXPOSED].join(', ')];
    const all = origins.includes('*');
    this.otherLines = headLines(all ? ['Access-Control-Allow-Origin', '*', ...exposed] : ['Vary', 'Origin']);
    this.linesByOrigin = new Map(
      (all ? [] : origins).map((origin) => [
        origin,
        headLines(['Vary', 'Origin', 'Access-Control-Allow-Origin', origin, ...exposed]),
      ]),
    );
  }

  /** Header lines of a reply to a request with this `Origin`; nothing of the request's stands in them. */
  lines(origin: string | undefined): string {
    return (origin === undefined ? undefined : this.linesByOrigin.get(origin)) ?? this.otherLines;
  }

  /** The headers that answer a preflight beside the usual lines; `undefined` for what is none, or of a foreign origin. */
  preflight({ method, headers }: IncomingMessage): Record<string, string> | undefined {
    if (method !== 'OPTIONS' || headers.origin === undefined) return undefined;
    if (headers['access-control-request-method'] === undefined) return undefined;
    if (!this.lines(headers.origin).includes('Access-Control-Allow-Origin')) return undefined;
    const names = headers['access-control-request-headers'] ?? '';
    const known = names.length <= HEADER_NAMES_LENGTH && HEADER_NAMES.test(names);
    return {
      'Access-Control-Allow-Methods': METHODS,
      'Access-Control-Max-Age': String(MAX_AGE_S),
      ...(known ? { 'Access-Control-Allow-Headers': names } : {}),
    };
  }
}
