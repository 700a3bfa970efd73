import type { IncomingMessage } from 'node:http';
import type { Logger } from '../../lib/logger.js';
import type { Principal } from '../route.js';
import type { AccessField, HttpSettings } from '../settings.js';

/** A request that is over. */
export interface AccessedRequest {
  readonly requestId: string;
  readonly operationId: string;
  readonly principal: Principal;
  readonly clientAddress: string | null;
  /** Of a complete body, as it was sent; `null` for a stream. */
  readonly replyBytes: number | null;
  readonly request: IncomingMessage;
  /** From its head to the end of its reply. */
  readonly durationMs: number;
}

type Value = string | number | null;

/** What a client writes is cut there. */
const LONGEST = 200;

const FIELDS: Readonly<Record<AccessField, (of: AccessedRequest, status: number) => Value>> = {
  requestId: ({ requestId }) => requestId,
  method: ({ request }) => request.method ?? null,
  operation: ({ operationId }) => operationId,
  status: (_, status) => status,
  durationMs: ({ durationMs }) => Math.round(durationMs * 100) / 100,
  principal: ({ principal }) => principal.name,
  client: ({ clientAddress }) => clientAddress,
  requestBytes: ({ request }) => lengthOf(request.headers['content-length']),
  replyBytes: ({ replyBytes }) => replyBytes,
  host: ({ request }) => cut(request.headers.host),
  userAgent: ({ request }) => cut(request.headers['user-agent']),
  httpVersion: ({ request }) => request.httpVersion,
};

/** A line a request, once it is over. Whatever a field may be, none holds a path, a query, a token or a body. */
export class AccessLog {
  private readonly log: Logger;
  private readonly fields: readonly (readonly [
    AccessField,
    (of: AccessedRequest, status: number) => Value,
  ])[];
  private readonly except: ReadonlySet<string>;
  private readonly sample: number;

  constructor(
    { fields, sample, except }: HttpSettings['accessLog'],
    log: Logger,
    /** From 0 to below 1. */
    private readonly random: () => number = Math.random,
  ) {
    // who asks for it gets it, however quiet the rest of the log is
    this.log = log.child({}, { level: 'info' });
    this.fields = fields.map((field) => [field, FIELDS[field]]);
    this.except = new Set(except);
    this.sample = sample;
  }

  write(request: AccessedRequest, status: number): void {
    if (status < 500 && (this.except.has(request.operationId) || this.random() >= this.sample)) return;
    const line: Partial<Record<AccessField, Value>> = {};
    for (const [name, read] of this.fields) line[name] = read(request, status);
    this.log.info(line, 'access');
  }
}

function cut(text: string | undefined): string | null {
  return text?.slice(0, LONGEST) ?? null;
}

function lengthOf(header: string | undefined): number | null {
  return header === undefined ? null : Number(header);
}
