import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { HttpError } from '../../../http/errors.js';
import type { RawReply, RawRoute } from '../../../http/route.js';
import type { QueueDeps } from '../deps.js';
import type { PublishRequest } from '../intake/addressed-messages.js';
import { anyBody, publishHeaders } from '../schemas.js';
import { plainTriggerHeaders } from '../workflow/run-headers.js';
import { entriesOf, runEntrySchema, runPublishesOf } from './batch-routes.js';
import { requestOf } from './publish-routes.js';

const triggered = z.object({
  workflowRunId: z.string(),
  workflowCreatedAt: z.number().describe('Unix time in ms.'),
  deduplicated: z.literal(true).optional().describe('A run of that id is under way already.'),
});

const ERRORS = [400, 401, 403, 412, 413, 429, 503];

/** Starts runs, all or none. */
async function trigger(
  requests: readonly PublishRequest[],
  { workflow }: QueueDeps,
): Promise<z.output<typeof triggered>[]> {
  const publishes = requests.map((request) => {
    const headers = { ...request.headers };
    for (const [name, value] of request.settings) headers[name] ??= value;
    const id = `wfr_${randomBytes(16).toString('base64url')}`;
    return {
      ...request,
      headers: plainTriggerHeaders(headers, request.destination, id),
      isPlainTrigger: true,
    };
  });
  const answers = await workflow.runs.accept(publishes);
  return answers.map(({ runId: workflowRunId, createdMs: workflowCreatedAt, deduplicated }) => ({
    workflowRunId,
    workflowCreatedAt,
    ...(deduplicated ? { deduplicated } : {}),
  }));
}

const created = (body: unknown): RawReply => ({ status: 201, body: JSON.stringify(body) });

const triggerRoute: RawRoute<QueueDeps> = {
  kind: 'raw',
  prefix: true,
  operationId: 'queue.trigger',
  keepsEncoding: true,
  summary:
    'Starts a run of the workflow at the URL in the path, with the body as its payload; for those who have no SDK. Headers as for a publish, and Upstash-Workflow-RunId.',
  methods: ['POST'],
  changesData: true,
  path: '/v2/trigger',
  documentedPath: '/v2/trigger/*destination',
  request: { headers: publishHeaders, body: anyBody },
  reply: triggered,
  replyStatus: 201,
  errors: ERRORS,
  handle: async (request, context, deps) => created((await trigger([requestOf(request, context)], deps))[0]),
};

const batchTrigger: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.batchTrigger',
  summary: 'Starts runs, all or none, from an array of what a batch takes.',
  methods: ['POST'],
  changesData: true,
  path: '/v2/batch/trigger',
  request: { body: z.array(runEntrySchema) },
  reply: z.array(triggered),
  replyStatus: 201,
  errors: ERRORS,
  handle: async ({ body }, { clientAddress: callerIp }, deps) => {
    const refusal = (place: number) =>
      new HttpError(
        'invalid_request',
        `Entry ${place} is none: destination, headers, body. Nothing was started.`,
      );
    const requests = await runPublishesOf(await entriesOf(body), callerIp, refusal);
    return created(await trigger(requests, deps));
  },
};

export const workflowTriggerRoutes = [triggerRoute, batchTrigger] as const;
