import { z } from 'zod';
import { HttpError } from '../../../http/errors.js';
import type { RawReply, RawRequest, RawRoute } from '../../../http/route.js';
import { jsonRoute } from '../../../http/route.js';
import type { QueueDeps } from '../deps.js';
import { anyBody } from '../schemas.js';
import type { KeptWait } from '../workflow/wait-request.js';
import { decoded, eventOf } from '../workflow/wait-request.js';
import type { Wait } from '../workflow/wait-rows.js';
import type { Woken } from '../workflow/waits.js';
import { arrayReply } from './array-reply.js';

const headerLists = z.record(z.string(), z.array(z.string()));

const waiter = z
  .object({
    url: z.string(),
    deadline: z.number().describe('Unix time in seconds.'),
    headers: headerLists,
    timeoutUrl: z.string(),
    timeoutHeaders: headerLists,
  })
  .meta({ id: 'WorkflowWaiter' });

const notifyReply = z.array(
  z.object({
    waiter,
    messageId: z.string(),
    workflowRunId: z.string(),
    workflowCreatedAt: z.number().describe('Unix time in ms.'),
  }),
);

function waiterView({ kept, deadlineMs }: Pick<Wait, 'kept' | 'deadlineMs'>): z.output<typeof waiter> {
  const { url, timeoutUrl, timeoutHeaders } = kept as KeptWait & {
    timeoutHeaders: Record<string, string[]>;
  };
  return {
    url,
    deadline: Math.floor(deadlineMs / 1_000),
    headers: timeoutHeaders,
    timeoutUrl,
    timeoutHeaders,
  };
}

const wokenView = ({ wait, messageId, runId, createdMs }: Woken): z.output<typeof notifyReply>[number] => ({
  waiter: waiterView(wait),
  messageId,
  workflowRunId: runId,
  workflowCreatedAt: createdMs,
});

/** The parts of a path behind a route's own, not decoded. */
const segmentsOf = ({ target }: RawRequest): string[] => (target.split('?')[0] ?? '').split('/').slice(1);

const json = (value: unknown): RawReply => ({ status: 200, body: JSON.stringify(value) });

const wait: RawRoute<QueueDeps> = {
  kind: 'raw',
  prefix: true,
  operationId: 'queue.wait',
  summary: 'A step of a workflow run begins to wait for an event, or until its time is over.',
  methods: ['POST'],
  changesData: true,
  path: '/v2/wait',
  documentedPath: '/v2/wait/:eventId',
  request: {
    body: z.object({
      url: z.string().optional(),
      timeout: z.union([z.string(), z.number()]).optional().describe('7d by default.'),
      timeoutUrl: z.string().optional(),
      timeoutHeaders: headerLists.describe('They name the run.'),
      step: z.looseObject({
        stepId: z.int(),
        stepName: z.string(),
        stepType: z.string(),
        concurrent: z.int(),
      }),
    }),
  },
  reply: z.object({}),
  errors: [400, 401, 403, 412, 413, 503],
  handle: async (request, _context, { workflow }) => {
    const segments = segmentsOf(request);
    if (segments.length !== 1)
      throw new HttpError(
        'limit_reached',
        'The path of a wait is /v2/wait/{eventId}; an event has no slash.',
      );
    await workflow.waits.wait(segments[0] as string, request.body);
    return json({});
  },
};

const notify: RawRoute<QueueDeps> = {
  kind: 'raw',
  prefix: true,
  operationId: 'queue.notify',
  summary:
    'Wakes the steps that wait for an event, in all workflow runs, with the body as its data; none waits: the event is lost. With a run in the path, of that run alone, for which it is kept until a step waits for it.',
  methods: ['POST'],
  changesData: true,
  path: '/v2/notify',
  documentedPath: '/v2/notify/:eventId',
  request: { body: anyBody },
  reply: notifyReply,
  errors: [400, 401, 403, 404, 412, 413, 429, 503],
  handle: async (request, _context, { workflow }) => {
    const [first = '', second, ...more] = segmentsOf(request);
    if (more.length > 0)
      throw new HttpError('not_found', 'Use /v2/notify/{eventId} or /v2/notify/{runId}/{eventId}.');
    if (second === undefined)
      return json((await workflow.waits.notify(eventOf(first), request.body)).map(wokenView));
    const id = decoded(first);
    const notified = await workflow.waits.notifyRun(id, eventOf(second), request.body);
    if (notified === 'unknown') throw new HttpError('not_found', `There is no workflow run ${id}.`);
    return json(typeof notified === 'string' ? [] : notified.map(wokenView));
  },
};

const listWaiters = jsonRoute<QueueDeps>()({
  operationId: 'queue.listWaiters',
  summary: 'The steps of workflow runs that wait for an event.',
  methods: ['GET'],
  path: '/v2/waiters/:eventId',
  request: { params: z.object({ eventId: z.string() }) },
  reply: z.array(waiter),
  errors: [400, 401, 412, 503],
  handle: async ({ params: { eventId } }, _context, { workflow }) =>
    arrayReply(workflow.waits.waiting(eventOf(encodeURIComponent(eventId))), (found) =>
      waiterView(found.wait),
    ),
});

/** Of the connection, or of a body that is told as base64. */
const NOT_TOLD = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'content-length',
  'te',
  'upgrade',
]);

/** A request as `context.waitForWebhook` rebuilds it. */
function toldRequest({ method, originalTarget, headers, body }: RawRequest): Buffer {
  const header: Record<string, string[]> = {};
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !NOT_TOLD.has(name)) header[name] = [value].flat();
  const [forwarded = ''] = [headers['x-forwarded-proto'] ?? ''].flat();
  const proto = /^https\b/i.test(forwarded) ? 'https' : 'http';
  return Buffer.from(
    JSON.stringify({
      ...{ method, header, body: body.toString('base64') },
      ...{ proto, host: headers.host ?? 'localhost', url: originalTarget },
    }),
  );
}

const hook: RawRoute<QueueDeps> = {
  kind: 'raw',
  prefix: true,
  operationId: 'queue.workflowHook',
  keepsEncoding: true,
  summary:
    'The webhook of a workflow run, as context.createWebhook makes it. Needs no token: the ids in the path are the secret. One request serves one context.waitForWebhook; it is kept until the run waits for it.',
  methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
  changesData: true,
  isOpen: true,
  path: '/v2/workflows/hooks',
  documentedPath: '/v2/workflows/hooks/:user/:runId/:eventId',
  request: { body: anyBody },
  reply: z.object({}),
  errors: [412, 429],
  handle: async (request, { signal }, { workflow }) => {
    const [user, run, event, ...more] = segmentsOf(request);
    if (user === undefined || run === undefined || event === undefined || more.length > 0)
      throw new HttpError('not_found');
    const notified = await workflow.waits.hook(decoded(run), eventOf(event), toldRequest(request), signal);
    if (notified === 'unknown' || notified === 'ended')
      throw new HttpError('not_found', 'There is no such webhook, or its workflow run has ended.');
    return json({});
  },
};

export const workflowEventRoutes = [wait, notify, listWaiters, hook] as const;
