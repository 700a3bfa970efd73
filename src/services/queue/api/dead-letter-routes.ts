import { z } from 'zod';
import { HttpError } from '../../../http/errors.js';
import { jsonRoute, type RawRequest, type RawRoute } from '../../../http/route.js';
import type { QueueDeps } from '../deps.js';
import { asText } from '../intake/control-headers.js';
import { resendDeadLetters, resendInTime } from '../intake/dead-letter-resend.js';
import { canonicalHeaders } from '../message/message.js';
import { deadLetterReply, deadLettersReply, deletedReply, resentReply } from '../schemas.js';
import {
  type DeadLetterCursor,
  type DeadLetterQuery,
  PARAMETERS_BEFORE,
} from '../store/dead-letter-search.js';
import type { DeadLetter } from '../store/dead-letter-store.js';
import { type FilterOptions, filterKeys, readFilters, readTime } from './filters.js';
import { bodyView, messageView, present } from './message-view.js';
import type { Query } from './query.js';
import { readSelection } from './selection.js';

const route = jsonRoute<QueueDeps>();

const MAX_COUNT = 100;

const FILTERS: FilterOptions = {
  fields: [
    ...['messageId', 'url', 'topicName', 'scheduleId', 'queueName', 'callerIp', 'callerIP', 'label'],
    'flowControlKey',
  ],
  others: { responseStatus: 'm.failure_status::text = any($::text[])' },
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
    responseHeader: canonicalHeaders(letter.headers),
    ...bodyView('responseBody', letter.body),
    ...(letter.error === null ? {} : { error: letter.error }),
  });
}

/** What a request is about; `ids` when it names letters by id. */
async function chosen(request: RawRequest): Promise<{
  wanted: DeadLetterQuery;
  ids: readonly string[] | undefined;
  query: Query;
}> {
  const { ids, query } = await readSelection(request, 'dlqIds', KEYS);
  if (ids !== undefined) return { wanted: { ids }, ids, query };
  const wanted = {
    messageIds: query.list('messageId'),
    from: readTime(query, 'fromDate'),
    to: readTime(query, 'toDate'),
    conditions: readFilters(query, FILTERS, PARAMETERS_BEFORE),
  };
  return { wanted, ids, query };
}

/** What a call that changes much takes: all named letters, or the next that fit. */
function chunkOf(query: Query, ids: readonly string[] | undefined) {
  const count = query.count('count', MAX_COUNT, MAX_COUNT);
  return { count: ids?.length ?? count, latestFirst: false, after: readCursor(query) };
}

const cursorOf = ({ place, dlqId }: DeadLetterCursor) => `${place}.${dlqId}`;
/** Of the very beginning. */
const START: DeadLetterCursor = { place: '0', dlqId: '0-0' };

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
    'Dead letters by id or filter, earliest first unless order=latestFirst; the last page has no cursor. Where a filter fits few of very many a page may have fewer than `count`, even none, and a cursor.',
  methods: ['GET'],
  path: '/v2/dlq',
  request: { query: querySchema },
  reply: deadLettersReply,
  errors: [400, 401, 503],
  handle: async (request, _context, { deadLetters }) => {
    const { wanted, query } = await chosen(request);
    const order = query.first('order') ?? 'earliestFirst';
    if (order !== 'earliestFirst' && order !== 'latestFirst')
      throw new HttpError('invalid_request', 'order: expected earliestFirst or latestFirst');
    const { letters, next } = await deadLetters.list(wanted, {
      count: query.count('count', MAX_COUNT, MAX_COUNT),
      latestFirst: order === 'latestFirst',
      after: readCursor(query),
    });
    const cursor = next === undefined ? {} : { cursor: cursorOf(next) };
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
    const [letter] = (await deadLetters.list({ ids: [id] }, page)).letters;
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
    const deleted = await deadLetters.delete([id]);
    if (deleted === 0) throw new HttpError('not_found', `There is no dead letter ${id}.`);
    return { deleted };
  },
});

const deleteDeadLetters: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.deleteDeadLetters',
  summary:
    'Removes dead letters by id, or at most `count` by filter; while there may be more the reply has a cursor, with which the next call goes on.',
  methods: ['DELETE'],
  path: '/v2/dlq',
  request: { query: querySchema },
  reply: deletedReply,
  errors: [400, 401, 403, 503],
  handle: async (request, _context, { deadLetters }) => {
    const { wanted, ids, query } = await chosen(request);
    const { pieces, next } = await deadLetters.find(wanted, chunkOf(query, ids));
    let deleted = 0;
    for (const piece of pieces) deleted += await deadLetters.delete(piece);
    const cursor = next === undefined ? {} : { cursor: cursorOf(next) };
    return { status: 200, body: JSON.stringify({ deleted, ...cursor }) };
  },
};

const resend: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.retryDeadLetters',
  summary:
    'Sends dead letters again, as new messages, by id or at most `count` by filter; while there may be more the reply has a cursor, with which the next call goes on. Instructions of the request override those of the messages.',
  methods: ['POST'],
  path: '/v2/dlq/retry',
  request: { query: querySchema },
  reply: resentReply,
  errors: [400, 401, 403, 429, 503],
  handle: async (request, _context, deps) => {
    const { wanted, ids, query } = await chosen(request);
    const chunk = chunkOf(query, ids);
    const { pieces, next } = await deps.deadLetters.find(wanted, chunk);
    const sent = await resendInTime(pieces, asText(request.headers), deps);
    const responses = sent.ids.map((messageId) => ({ messageId }));
    // those that were sent are gone: where some were left, the search begins where it began
    const goOn = sent.isWhole ? next : (chunk.after ?? START);
    return {
      status: 201,
      body: JSON.stringify({ cursor: goOn === undefined ? '' : cursorOf(goOn), responses }),
    };
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
    const [messageId] = await resendDeadLetters([id], asText(request.headers), deps);
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
