import { z } from 'zod';
import { HttpError } from '../../../http/errors.js';
import type { RawReply, RawRequest, RawRoute, RouteContext } from '../../../http/route.js';
import { arrayText } from '../../../lib/json/json-text.js';
import type { QueueDeps } from '../deps.js';
import { redacted } from '../intake/redaction.js';
import { canonicalHeaders } from '../message/message.js';
import { eventsReply, logsReply } from '../schemas.js';
import type { LogEntry, LogQuery } from '../store/event-log.js';
import { type FilterOptions, filterKeys, readFilters, readTime } from './filters.js';
import { messageView, present } from './message-view.js';
import { Query } from './query.js';

const MAX_COUNT = 1_000;
const DEFAULT_COUNT = 100;

const FILTERS: FilterOptions = {
  fields: [
    ...[
      'messageId',
      'topicName',
      'queueName',
      'url',
      'host',
      'path',
      'label',
      'flowControlKey',
      'scheduleId',
    ],
    ...['callerIp', 'callerIP'],
  ],
  others: {
    messageIds: 'm.id = any($::text[])',
    // documents spell CANCELLED, clients CANCELED; IN_PROGRESS stands for three
    state: `e.state = any(array(select case upper(s) when 'CANCELLED' then 'CANCELED' else upper(s) end from unnest($::text[]) s)
      || case when 'IN_PROGRESS' = any($::text[]) then array['ACTIVE', 'RETRY', 'ERROR'] else '{}' end)`,
  },
};
const KEYS = [...filterKeys(FILTERS), 'count', 'cursor', 'order'];

const STATES = new Set([
  ...[
    'CREATED',
    'ACTIVE',
    'RETRY',
    'ERROR',
    'DELIVERED',
    'FAILED',
    'CANCEL_REQUESTED',
    'CANCELED',
    'CANCELLED',
  ],
  'IN_PROGRESS',
]);

/** Bodies are base64 here, unlike in the message itself. */
function entryView(entry: LogEntry): Record<string, unknown> {
  const { message } = entry;
  const { body: _, bodyBase64: __, callbackHeader, failureCallbackHeader, ...view } = messageView(message);
  const { redact, retryDelay } = message.details;
  const responseHeaders = entry.headers === null ? undefined : canonicalHeaders(entry.headers);
  return present({
    ...view,
    time: Math.floor(Number(entry.at) / 1_000),
    state: entry.state,
    body: redact?.body === true ? redacted(message.body) : message.body.toString('base64'),
    callbackHeaders: callbackHeader,
    failureCallbackHeaders: failureCallbackHeader,
    retryDelayExpr: retryDelay,
    timeout: message.timeoutMs ?? undefined,
    nextDeliveryTime: entry.nextDeliveryTime ?? undefined,
    error: entry.error ?? undefined,
    responseStatus: entry.status ?? undefined,
    responseHeader: responseHeaders,
    responseHeaders,
    responseBody: entry.body === null ? undefined : entry.body.toString('base64'),
  });
}

function readPage(query: Query): LogQuery {
  const order = query.first('order') ?? 'latestFirst';
  if (order !== 'earliestFirst' && order !== 'latestFirst')
    throw new HttpError('invalid_request', 'order: expected earliestFirst or latestFirst');
  const text = query.first('cursor') ?? '';
  const [, at, seq] = /^(\d{1,18})-(\d{1,18})$/.exec(text) ?? [];
  if (text !== '' && (at === undefined || seq === undefined))
    throw new HttpError('invalid_request', 'cursor: is none that this service gave out');
  return {
    count: query.count('count', DEFAULT_COUNT, MAX_COUNT),
    oldestFirst: order === 'earliestFirst',
    after: at === undefined || seq === undefined ? undefined : { at, seq },
    from: readTime(query, 'fromDate'),
    to: readTime(query, 'toDate'),
    byMessage: query.list('messageId') !== undefined || query.list('messageIds') !== undefined,
  };
}

async function listEvents(
  { target }: RawRequest,
  { signal }: RouteContext,
  { events, listings }: QueueDeps,
  key: 'events' | 'logs',
): Promise<RawReply> {
  const query = new Query(target);
  query.allowOnly(KEYS);
  for (const state of query.list('state') ?? [])
    if (!STATES.has(state.toUpperCase()))
      throw new HttpError('invalid_request', `state: there is no ${state}`);
  const [filters, page] = [readFilters(query, FILTERS, 9), readPage(query)];
  return listings.page(async () => {
    const { entries, next } = await events.list(filters, page);
    const cursor = next === undefined ? '' : `,"cursor":"${next.at}-${next.seq}"`;
    return { status: 200, body: `{"${key}":${await arrayText(entries, STEP, entryView)}${cursor}}` };
  }, signal);
}

/** Entries that are written between two places to rest. */
const STEP = 20;

function logRoute(key: 'events' | 'logs'): RawRoute<QueueDeps> {
  return {
    kind: 'raw',
    operationId: `queue.${key}`,
    summary:
      'What happened to messages, newest first unless order=earliestFirst; the last page has no cursor. Where a filter fits few of very many entries a page may have fewer than `count`, even none, and a cursor.',
    methods: ['GET'],
    path: `/v2/${key}`,
    request: { query: z.object(Object.fromEntries(KEYS.map((name) => [name, z.string().optional()]))) },
    reply: key === 'events' ? eventsReply : logsReply,
    errors: [400, 401, 503],
    handle: (request, context, deps) => listEvents(request, context, deps, key),
  };
}

export const eventRoutes = [logRoute('events'), logRoute('logs')] as const;
