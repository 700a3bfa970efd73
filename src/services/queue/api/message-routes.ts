import { z } from 'zod';
import { HttpError } from '../../../http/errors.js';
import { jsonRoute, type RawRoute } from '../../../http/route.js';
import type { QueueDeps } from '../deps.js';
import { cancelReply, expeditedReply, messageReply } from '../schemas.js';
import type { Conditions } from '../store/conditions.js';
import type { CancelQuery, Expedited } from '../store/message-index.js';
import { type FilterOptions, filterKeys, readFilters } from './filters.js';
import { messageView } from './message-view.js';
import type { Query } from './query.js';
import { readSelection } from './selection.js';

const route = jsonRoute<QueueDeps>();

const MAX_CANCELLED = 500;
const CANCELLED = 100;
/** Parameters that a search has before those of its conditions. */
const PARAMETERS_BEFORE = 3;
/** What waited for cancelled messages is let go for so long, in ms, before the answer; the sweeper sees to the rest. */
const RELEASE_MS = 2_000;

const FILTERS: FilterOptions = {
  time: 'm.created_at',
  fields: [
    ...['topicName', 'queueName', 'url', 'host', 'path', 'label', 'flowControlKey', 'scheduleId'],
    ...['callerIp', 'callerIP'],
  ],
};

const KEYS = [...filterKeys(FILTERS), 'count', 'cursor'];

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
  changesData: true,
  path: '/v2/messages/:id',
  request: { params: z.object({ id: z.string() }) },
  reply: cancelReply,
  errors: [400, 401, 403, 404, 503],
  handle: async ({ params: { id } }, _context, deps) => {
    const { cancelled } = await cancel({ ids: [id], conditions: ANY }, 1, deps);
    if (cancelled === 0)
      throw new HttpError('not_found', `There is no message ${id} that could be cancelled.`);
    return { cancelled };
  },
});

/** Why a message is not delivered earlier than it is. */
const NOT_EXPEDITED: Readonly<Record<Exclude<Expedited, object | 'missing' | 'over'>, string>> = {
  ordered: 'is in a queue, whose messages keep their order',
  timer: 'is the end of a wait for an event: notify that event, or cancel the run',
  held: 'waits for room under its flow-control key, not for a time',
  underWay: 'is being delivered',
  due: 'is due already',
};

const retryNow = route({
  operationId: 'queue.retryMessageNow',
  summary:
    'Ends the wait of a delayed message, of one that waits for its next attempt, or of a step of a workflow that sleeps: it is delivered now. No attempt is added.',
  methods: ['POST'],
  changesData: true,
  path: '/v2/messages/:id/retry',
  request: { params: z.object({ id: z.string() }) },
  reply: expeditedReply,
  errors: [400, 401, 403, 404, 503],
  handle: async ({ params: { id } }, _context, { index, heldMessages }) => {
    const expedited = await index.expedite(id);
    if (expedited === 'missing' || expedited === 'over')
      throw new HttpError('not_found', `There is no message ${id} that waits for its delivery.`);
    if (typeof expedited === 'string')
      throw new HttpError('invalid_request', `The message ${id} ${NOT_EXPEDITED[expedited]}.`);
    // it is due in Postgres, and the sweeper finds what is lost from here on
    void heldMessages.send([{ ...expedited, delayMs: 0 }]);
    return { messageId: id };
  },
});

const ANY: Conditions = { sql: 'true', values: [] };

async function cancel(
  wanted: CancelQuery,
  limit: number,
  { index, heldMessages }: QueueDeps,
  after?: string,
): Promise<{ cancelled: number; cursor?: string }> {
  const { count, queues, flowKeys, next } = await index.cancel(wanted, limit, after);
  const end = performance.now() + RELEASE_MS;
  for (const name of queues) if (performance.now() < end) await heldMessages.releaseQueue(name);
  for (const key of flowKeys) if (performance.now() < end) await heldMessages.releaseKey(key);
  return { cancelled: count, ...(next === undefined ? {} : { cursor: next }) };
}

/** Callers go on until 0 is answered: where the search has not come to its end that would be untrue. */
function refuseUnfinished({ cancelled, cursor }: { cancelled: number; cursor?: string }): void {
  if (cancelled === 0 && cursor !== undefined)
    throw new HttpError(
      'backend_unavailable',
      `Nothing that fits was found in time among the messages up to ${cursor}; call again with cursor=${cursor} to go on from there.`,
    );
}

/** The id behind which a cancellation goes on. @throws HttpError 400 */
function readCursor(query: Query): string | undefined {
  const text = query.first('cursor');
  if (text === undefined || text === '' || /^msg_\w{1,96}$/.test(text)) return text;
  throw new HttpError('invalid_request', 'cursor: is none that this service gave out');
}

const cancelMessages: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.cancelMessages',
  audit: 'destructive',
  summary:
    'Cancels the messages with these ids, or at most `count` that fit the filters; without either, any. Call it until it answers 0. With a cursor in the reply the search had no time for all messages, and the next call may go on from there.',
  methods: ['DELETE'],
  changesData: true,
  path: '/v2/messages',
  request: {
    query: z.object(Object.fromEntries(['messageIds', ...KEYS].map((key) => [key, z.string().optional()]))),
  },
  reply: cancelReply,
  errors: [400, 401, 403, 503],
  handle: async (request, _context, deps) => {
    const { ids, query } = await readSelection(request, 'messageIds', KEYS);
    const reply =
      ids === undefined
        ? await cancel(
            {
              queueNames: query.list('queueName'),
              flowKeys: query.whole('flowControlKey'),
              conditions: readFilters(query, FILTERS, PARAMETERS_BEFORE),
            },
            query.count('count', CANCELLED, MAX_CANCELLED),
            deps,
            readCursor(query),
          )
        : await cancel({ ids, conditions: ANY }, ids.length, deps);
    refuseUnfinished(reply);
    return { status: 200, body: JSON.stringify(reply) };
  },
};

export const messageRoutes = [getMessage, cancelMessage, retryNow, cancelMessages] as const;
