import { z } from 'zod';
import { HttpError } from '../../http/errors.js';
import { jsonRoute, type RawRequest, type RawRoute } from '../../http/route.js';
import { type Conditions, type FilterOptions, filterKeys, readFilters } from './filters.js';
import { messageView } from './message-view.js';
import { Query } from './query.js';
import type { QueueDeps } from './queue-deps.js';
import { cancelReply, messageReply } from './reply-schemas.js';

const route = jsonRoute<QueueDeps>();

const MAX_CANCELLED = 500;
const CANCELLED = 100;
/** Ids in one request. */
const MAX_IDS = 10_000;

const FILTERS: FilterOptions = {
  time: 'm.created_at',
  fields: [
    ...['topicName', 'queueName', 'url', 'host', 'path', 'label', 'flowControlKey', 'scheduleId'],
    ...['callerIp', 'callerIP'],
  ],
};

const getMessage = route({
  operationId: 'queue.getMessage',
  summary: 'A message, also for a while after its delivery. Redacted fields are shown as digests.',
  methods: ['GET'],
  path: '/v2/messages/:id',
  request: { params: z.object({ id: z.string() }) },
  reply: messageReply,
  errors: [400, 401, 404, 503],
  handle: async ({ params: { id } }, _context, { index }) => {
    const message = await index.get(id);
    if (message === undefined) throw new HttpError('not_found', `There is no message ${id}.`);
    return messageView(message) as z.output<typeof messageReply>;
  },
});

const cancelMessage = route({
  operationId: 'queue.cancelMessage',
  summary: 'Cancels a message that is not delivered yet; a request under way may be too late.',
  methods: ['DELETE'],
  path: '/v2/messages/:id',
  request: { params: z.object({ id: z.string() }) },
  reply: cancelReply,
  errors: [400, 401, 403, 404, 503],
  handle: async ({ params: { id } }, _context, deps) => {
    const cancelled = await cancel({ sql: 'm.id = $2', values: [id] }, 1, deps);
    if (cancelled === 0)
      throw new HttpError('not_found', `There is no message ${id} that could be cancelled.`);
    return { cancelled };
  },
});

/** The ids of a bulk operation: from the query, or from a JSON body as older clients send it. `undefined`: not by id. */
export function idsOf(key: string, query: Query, body: Buffer): string[] | undefined {
  const fromQuery = query.list(key);
  if (fromQuery !== undefined) return bounded(key, fromQuery);
  if (body.length === 0) return undefined;
  const text = body.toString('utf8').trim();
  if (text === '') return undefined;
  try {
    const value = (JSON.parse(text) as Record<string, unknown> | null)?.[key];
    if (value === undefined) return undefined;
    return bounded(key, z.array(z.string()).parse(value));
  } catch (cause) {
    throw new HttpError('invalid_request', `The body is no JSON object with a list ${key}.`, { cause });
  }
}

function bounded(key: string, ids: string[]): string[] {
  if (ids.length > MAX_IDS) throw new HttpError('invalid_request', `${key}: more than ${MAX_IDS} ids`);
  return ids;
}

/** An empty id that was joined into a path must not be taken for "all". */
export function refuseEmptyId({ target, body }: RawRequest, query: Query): void {
  if (/^[^?]*\/(\?|$)/.test(target) && query.isEmpty && body.length === 0)
    throw new HttpError('invalid_request', 'The id is empty.');
}

async function cancel(conditions: Conditions, limit: number, { index, turns }: QueueDeps): Promise<number> {
  const { count, queues, flowKeys } = await index.cancel(conditions, limit);
  for (const name of queues) await turns.releaseQueue(name);
  for (const key of flowKeys) await turns.releaseKey(key);
  return count;
}

const cancelMessages: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.cancelMessages',
  summary:
    'Cancels the messages with these ids, or at most `count` that fit the filters; without either, any. Call it until it answers 0.',
  methods: ['DELETE'],
  path: '/v2/messages',
  request: {
    query: z.object(
      Object.fromEntries(
        ['messageIds', ...filterKeys(FILTERS), 'count'].map((key) => [key, z.string().optional()]),
      ),
    ),
  },
  reply: cancelReply,
  errors: [400, 401, 403, 503],
  handle: async (request, _context, deps) => {
    const query = new Query(request.target);
    refuseEmptyId(request, query);
    query.allowOnly(['messageIds', ...filterKeys(FILTERS), 'count']);
    const ids = idsOf('messageIds', query, request.body);
    const cancelled =
      ids === undefined
        ? await cancel(readFilters(query, FILTERS, 1), query.count('count', CANCELLED, MAX_CANCELLED), deps)
        : await cancel({ sql: 'm.id = any($2::text[])', values: [ids] }, ids.length, deps);
    return { status: 200, body: JSON.stringify({ cancelled }) };
  },
};

export const messageRoutes = [getMessage, cancelMessage, cancelMessages] as const;
