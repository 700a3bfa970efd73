import { z } from 'zod';
import { HttpError } from '../../http/errors.js';
import { jsonRoute, type RawRoute } from '../../http/route.js';
import { type Conditions, type FilterOptions, filterKeys, readFilters } from './filters.js';
import { messageView } from './message-view.js';
import type { QueueDeps } from './queue-deps.js';
import { cancelReply, messageReply } from './reply-schemas.js';
import { readSelection } from './selection.js';

const route = jsonRoute<QueueDeps>();

const MAX_CANCELLED = 500;
const CANCELLED = 100;

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
    const { ids, query } = await readSelection(request, 'messageIds', [...filterKeys(FILTERS), 'count']);
    const cancelled =
      ids === undefined
        ? await cancel(readFilters(query, FILTERS, 1), query.count('count', CANCELLED, MAX_CANCELLED), deps)
        : await cancel({ sql: 'm.id = any($2::text[])', values: [ids] }, ids.length, deps);
    return { status: 200, body: JSON.stringify({ cancelled }) };
  },
};

export const messageRoutes = [getMessage, cancelMessage, cancelMessages] as const;
