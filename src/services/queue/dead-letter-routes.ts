import { z } from 'zod';
import { HttpError } from '../../http/errors.js';
import { jsonRoute, type RawRequest, type RawRoute } from '../../http/route.js';
import { resendDeadLetters, resendInTime } from './dead-letter-resend.js';
import type { DeadLetter, DeadLetterCursor } from './dead-letter-store.js';
import { type Conditions, type FilterOptions, filterKeys, readFilters } from './filters.js';
import { bodyView, messageView, present } from './message-view.js';
import type { Query } from './query.js';
import type { QueueDeps } from './queue-deps.js';
import { deadLetterReply, deadLettersReply, deletedReply, resentReply } from './reply-schemas.js';
import { readSelection } from './selection.js';

const route = jsonRoute<QueueDeps>();

const MAX_COUNT = 100;

const FILTERS: FilterOptions = {
  time: `(extract(epoch from d.created_at) * 1000)`,
  fields: [
    ...['messageId', 'url', 'topicName', 'scheduleId', 'queueName', 'callerIp', 'callerIP', 'label'],
    'flowControlKey',
  ],
  others: { responseStatus: 'd.response_status::text = any($::text[])' },
};
const KEYS = [...filterKeys(FILTERS), 'count', 'cursor', 'order'];

const querySchema = z.object(
  Object.fromEntries(['dlqIds', ...KEYS].map((key) => [key, z.string().optional()])),
);

function letterView(letter: DeadLetter): Record<string, unknown> {
  return present({
    ...messageView(letter.message),
    dlqId: letter.dlqId,
    responseStatus: letter.status,
    responseHeader: letter.headers,
    ...bodyView('responseBody', letter.body),
    ...(letter.error === null ? {} : { error: letter.error }),
  });
}

/** What a request is about: `conditions` with parameters from `before` + 1 on; `ids` when it names letters by id. */
async function chosen(request: RawRequest, before: number) {
  const { ids, query } = await readSelection(request, 'dlqIds', KEYS);
  const conditions: Conditions =
    ids === undefined
      ? readFilters(query, FILTERS, before)
      : { sql: `d.id = any($${before + 1}::text[])`, values: [ids] };
  return { conditions, ids, query };
}

function readCursor(query: Query): DeadLetterCursor | undefined {
  const text = query.first('cursor');
  if (text === undefined || text === '') return undefined;
  const [, place, dlqId] = /^(\d{1,18})\.(\d+-\d+)$/.exec(text) ?? [];
  if (place === undefined || dlqId === undefined)
    throw new HttpError('invalid_request', 'cursor: is none that this service gave out');
  return { place, dlqId };
}

const listDeadLetters: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.listDeadLetters',
  summary:
    'Dead letters by id or filter, earliest first unless order=latestFirst; the last page has no cursor.',
  methods: ['GET'],
  path: '/v2/dlq',
  request: { query: querySchema },
  reply: deadLettersReply,
  errors: [400, 401, 503],
  handle: async (request, _context, { deadLetters }) => {
    const { conditions, query } = await chosen(request, 3);
    const order = query.first('order') ?? 'earliestFirst';
    if (order !== 'earliestFirst' && order !== 'latestFirst')
      throw new HttpError('invalid_request', 'order: expected earliestFirst or latestFirst');
    const { letters, hasMore } = await deadLetters.list(conditions, {
      count: query.count('count', MAX_COUNT, MAX_COUNT),
      latestFirst: order === 'latestFirst',
      after: readCursor(query),
    });
    const last = letters.at(-1);
    const cursor = hasMore && last !== undefined ? { cursor: `${last.place}.${last.dlqId}` } : {};
    return { status: 200, body: JSON.stringify({ messages: letters.map(letterView), ...cursor }) };
  },
};

const getDeadLetter = route({
  operationId: 'queue.getDeadLetter',
  summary: 'One dead letter with the last response.',
  methods: ['GET'],
  path: '/v2/dlq/:id',
  request: { params: z.object({ id: z.string() }) },
  reply: deadLetterReply,
  errors: [400, 401, 404, 503],
  handle: async ({ params: { id } }, _context, { deadLetters }) => {
    const page = { count: 1, latestFirst: false, after: undefined };
    const [letter] = (await deadLetters.list({ sql: 'd.id = $4', values: [id] }, page)).letters;
    if (letter === undefined) throw new HttpError('not_found', `There is no dead letter ${id}.`);
    return letterView(letter) as z.output<typeof deadLetterReply>;
  },
});

const deleteDeadLetter = route({
  operationId: 'queue.deleteDeadLetter',
  summary: 'Removes a dead letter.',
  methods: ['DELETE'],
  path: '/v2/dlq/:id',
  request: { params: z.object({ id: z.string() }) },
  reply: deletedReply,
  errors: [400, 401, 403, 404, 503],
  handle: async ({ params: { id } }, _context, { deadLetters }) => {
    const deleted = await deadLetters.delete({ sql: 'd.id = $2', values: [id] }, 1);
    if (deleted === 0) throw new HttpError('not_found', `There is no dead letter ${id}.`);
    return { deleted };
  },
});

const deleteDeadLetters: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.deleteDeadLetters',
  summary:
    'Removes dead letters by id, or at most `count` by filter; while there are more the reply has a cursor.',
  methods: ['DELETE'],
  path: '/v2/dlq',
  request: { query: querySchema },
  reply: deletedReply,
  errors: [400, 401, 403, 503],
  handle: async (request, _context, { deadLetters }) => {
    const { conditions, ids, query } = await chosen(request, 1);
    const count = query.count('count', MAX_COUNT, MAX_COUNT);
    const deleted = await deadLetters.delete(conditions, ids?.length ?? count);
    // what is gone needs no place to go on from
    const cursor = ids === undefined && deleted === count ? { cursor: '0.0-0' } : {};
    return { status: 200, body: JSON.stringify({ deleted, ...cursor }) };
  },
};

const resend: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.retryDeadLetters',
  summary:
    'Sends dead letters again, as new messages, by id or at most `count` by filter. Instructions of the request override those of the messages.',
  methods: ['POST'],
  path: '/v2/dlq/retry',
  request: { query: querySchema },
  reply: resentReply,
  errors: [400, 401, 403, 429, 503],
  handle: async (request, _context, deps) => {
    const { conditions, ids, query } = await chosen(request, 1);
    const count = query.count('count', MAX_COUNT, MAX_COUNT);
    const sent = await resendInTime(conditions, ids?.length ?? count, request.headers, deps);
    const responses = sent.ids.map((messageId) => ({ messageId }));
    const hasMore = !sent.isWhole || (ids === undefined && sent.ids.length === count);
    return { status: 201, body: JSON.stringify({ cursor: hasMore ? '0.0-0' : '', responses }) };
  },
};

const resendOne = {
  kind: 'raw',
  prefix: true,
  operationId: 'queue.retryDeadLetter',
  summary: 'Sends one dead letter again, as a new message.',
  methods: ['POST'],
  path: '/v2/dlq/retry',
  documentedPath: '/v2/dlq/retry/:id',
  reply: resentReply,
  errors: [400, 401, 403, 404, 429, 503],
  handle: async (request, _context, deps) => {
    const id = /^\/([^/?]*)/.exec(request.target)?.[1] ?? '';
    const conditions = { sql: 'd.id = $2', values: [id] };
    const [messageId] = (await resendDeadLetters(conditions, 1, request.headers, deps)).ids;
    if (messageId === undefined) throw new HttpError('not_found', `There is no dead letter ${id}.`);
    return { status: 201, body: JSON.stringify({ messageId }) };
  },
} satisfies RawRoute<QueueDeps>;

export const deadLetterRoutes = [
  listDeadLetters,
  deleteDeadLetters,
  // before the paths with an id, which would take `retry` for one
  resend,
  getDeadLetter,
  deleteDeadLetter,
  resendOne,
] as const;
