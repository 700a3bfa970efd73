import { z } from 'zod';
import { HttpError } from '../../../http/errors.js';
import { jsonRoute } from '../../../http/route.js';
import type { QueueDeps } from '../deps.js';
import type { OrderedQueue } from '../order/ordered-queues.js';
import { nothingReply, orderedQueueReply } from '../schemas.js';
import { checkName } from '../store/names.js';
import { arrayReply } from './array-reply.js';

const route = jsonRoute<QueueDeps>();

const MAX_PARALLELISM = 10_000;

const params = z.object({ queue: z.string() });

const view = (queue: OrderedQueue) => ({
  ...queue,
  createdAt: Math.round(queue.createdAt),
  updatedAt: Math.round(queue.updatedAt),
});

const upsertQueue = route({
  operationId: 'queue.upsertQueue',
  audit: 'administrative',
  summary: 'Makes a queue that keeps the order, or changes it.',
  methods: ['POST'],
  changesData: true,
  path: '/v2/queues',
  request: {
    body: z.object({
      queueName: z.string(),
      parallelism: z.int().min(1).max(MAX_PARALLELISM).nullish(),
      paused: z.boolean().nullish(),
    }),
  },
  reply: nothingReply,
  errors: [400, 401, 403, 503],
  handle: async ({ body: { queueName, parallelism, paused } }, _context, { queues, heldMessages }) => {
    checkName(queueName, 'queue');
    const change = await queues.upsert(queueName, {
      ...(parallelism == null ? {} : { parallelism }),
      ...(paused == null ? {} : { paused }),
    });
    heldMessages.releaseReturned(change.returnedSlots);
    await heldMessages.send(change.tickets);
    return {};
  },
});

const listQueues = route({
  operationId: 'queue.listQueues',
  summary: 'All queues that keep the order.',
  methods: ['GET'],
  path: '/v2/queues',
  request: {},
  reply: z.array(orderedQueueReply),
  errors: [401, 503],
  handle: async (_input, _context, { queues }) => arrayReply(queues.list(), view),
});

const getQueue = route({
  operationId: 'queue.getQueue',
  summary: 'A queue that keeps the order; lag is the number of messages that are not finished.',
  methods: ['GET'],
  path: '/v2/queues/:queue',
  request: { params },
  reply: orderedQueueReply,
  errors: [400, 401, 404, 503],
  handle: async ({ params: { queue: name } }, _context, { queues }) => {
    const queue = await queues.find(name);
    if (queue === undefined) throw new HttpError('not_found', `There is no queue ${name}.`);
    return view(queue);
  },
});

const deleteQueue = route({
  operationId: 'queue.deleteQueue',
  audit: 'destructive',
  summary:
    'Deletes a queue and cancels the messages that wait in it; of very many, some after the answer. No error when there is none.',
  methods: ['DELETE'],
  changesData: true,
  path: '/v2/queues/:queue',
  request: { params },
  reply: nothingReply,
  errors: [400, 401, 403, 503],
  handle: async ({ params: { queue } }, _context, { deletions }) => {
    await deletions.delete(queue);
    return {};
  },
});

function pauseRoute(verb: 'pause' | 'resume') {
  return route({
    operationId: `queue.${verb}Queue`,
    audit: 'administrative',
    summary:
      verb === 'pause'
        ? 'Lets no further attempt of the queue begin, retries included; it goes on taking messages, and callbacks of what was begun go out.'
        : 'Lets the messages of a paused queue go on.',
    methods: ['POST'],
    changesData: true,
    path: `/v2/queues/:queue/${verb}`,
    request: { params },
    reply: nothingReply,
    errors: [400, 401, 403, 404, 503],
    handle: async ({ params: { queue: name } }, _context, { queues, heldMessages }) => {
      if (!(await queues.exists(name))) throw new HttpError('not_found', `There is no queue ${name}.`);
      const { tickets, returnedSlots } = await queues.upsert(name, { paused: verb === 'pause' });
      heldMessages.releaseReturned(returnedSlots);
      await heldMessages.send(tickets);
      return {};
    },
  });
}

export const orderedQueueRoutes = [
  upsertQueue,
  listQueues,
  getQueue,
  deleteQueue,
  pauseRoute('pause'),
  pauseRoute('resume'),
] as const;
