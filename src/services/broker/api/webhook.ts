import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { HttpError } from '../../../http/errors.js';
import { queryParameters } from '../../../http/query.js';
import type { RawRoute, Route } from '../../../http/route.js';
import type { BrokerDeps } from '../deps.js';
import * as schemas from '../schemas.js';
import { produce } from './produce-routes.js';

/** The query parameters that may carry the credentials of this path. */
export const WEBHOOK_CREDENTIALS = { username: 'user', password: 'pass', paths: ['/webhook'] } as const;

/** Headers of HTTP itself (IANA's registry of permanent field names, as far as requests have them) and of browsers. */
const STANDARD: ReadonlySet<string> = new Set(
  `accept accept-charset accept-datetime accept-encoding accept-language alt-used authorization cache-control
  connection content-digest content-disposition content-encoding content-language content-length content-location
  content-range content-type cookie cookie2 date dnt early-data expect forwarded from host http2-settings if-match
  if-modified-since if-none-match if-range if-schedule-tag-match if-unmodified-since keep-alive last-modified
  max-forwards mime-version origin pragma prefer priority proxy-connection range referer repr-digest te trailer
  transfer-encoding upgrade upgrade-insecure-requests user-agent via want-content-digest want-repr-digest warning
  x-real-ip`.split(/\s+/),
);
const STANDARD_FAMILIES = /^(access-control-|proxy-|sec-|x-forwarded-)/;

/** Headers of a webhook's request that go along with its body: never credentials, cookies or what proxies add. */
export function messageHeaders(headers: IncomingHttpHeaders): { key: string; value: string }[] {
  return Object.entries(headers).flatMap(([key, value]) => {
    if (value === undefined || STANDARD.has(key) || STANDARD_FAMILIES.test(key)) return [];
    return [{ key, value: headerText(Array.isArray(value) ? value.join(', ') : value) }];
  });
}

/** Node reads header bytes as latin1, which some senders mean and others do not. */
function headerText(value: string): string {
  const bytes = Buffer.from(value, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : value;
}

const webhook: RawRoute<BrokerDeps> = {
  kind: 'raw',
  operationId: 'broker.webhook',
  isKeyed: true,
  summary: 'Writes the body, whatever it is, as one record; further headers become headers of the record.',
  methods: ['GET', 'POST'],
  changesData: true,
  path: '/webhook',
  request: { query: schemas.webhookQuery, body: schemas.webhookBody },
  reply: schemas.metadataListReply,
  errors: [400, 403],
  handle: async ({ target, headers, body }, context, deps) => {
    const query = schemas.webhookQuery.safeParse(Object.fromEntries(queryParameters(target)));
    if (!query.success) throw new HttpError('invalid_request', 'The query parameter topic names no topic.');
    const record = { topic: query.data.topic, value: body, headers: messageHeaders(headers) };
    return { status: 200, body: JSON.stringify(await produce([record], context, deps)) };
  },
};

export const webhookRoutes: readonly Route<BrokerDeps>[] = [webhook];
