import { z } from 'zod';
import { HttpError } from '../../../http/errors.js';
import type { RawReply, RawRequest, RawRoute } from '../../../http/route.js';
import type { QueueDeps } from '../deps.js';
import { cancelReply } from '../schemas.js';
import type { FoundRuns } from '../workflow/run-search.js';
import { stepTexts } from '../workflow/steps-body.js';
import { arrayOfTexts } from './array-reply.js';
import { Query } from './query.js';
import { CANCEL_KEYS, readCancelFilters, readRunCursor, runCursorText } from './run-filters.js';
import { readSelection } from './selection.js';

const MAX_CANCELLED = 500;
const CANCELLED = 100;
/** Each run is cancelled by itself: after this, in ms, no further one is, so that the reply comes in time. */
const CANCEL_MS = 5_000;

/** The id behind a route's path. */
function idOf({ target }: RawRequest): string {
  const id = /^\/([^/?]+)/.exec(target)?.[1];
  if (id === undefined) throw new HttpError('invalid_request', 'The id is empty.');
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}

/** The end of a run as its workflow tells it, with the result as body; or its cancellation by anybody. */
async function endRun(request: RawRequest, { workflow }: QueueDeps): Promise<RawReply> {
  const id = idOf(request);
  const query = new Query(request.target);
  if (query.first('cancel')?.toLowerCase() === 'false') {
    // the answer to an end that was told before may have been lost
    const ended = await workflow.runs.end(id, request.body);
    return { status: 200, body: JSON.stringify({ cancelled: 0, ended: ended ? 1 : 0 }) };
  }
  if (!(await workflow.runs.cancel(id)))
    throw new HttpError('not_found', `There is no workflow run ${id} under way.`);
  return { status: 200, body: JSON.stringify({ cancelled: 1 }) };
}

const endWorkflowRun: RawRoute<QueueDeps> = {
  kind: 'raw',
  prefix: true,
  operationId: 'queue.endWorkflowRun',
  summary:
    'Cancels a workflow run: what it has not done yet is not done. With cancel=false, as the SDKs send it, the run has come to its end and the body is its result.',
  methods: ['DELETE'],
  changesData: true,
  path: '/v2/workflows/runs',
  documentedPath: '/v2/workflows/runs/:id',
  request: { query: z.object({ cancel: z.enum(['true', 'false']).optional() }) },
  reply: cancelReply,
  errors: [400, 401, 403, 404, 503],
  handle: (request, _context, deps) => endRun(request, deps),
};

/** Cancels runs one by one. @param wanted how many were looked for; `undefined`: they were named, so none may be left */
async function cancelFound(
  { runs, next }: FoundRuns,
  wanted: number | undefined,
  { workflow }: QueueDeps,
): Promise<{ cancelled: number; cursor?: string }> {
  const until = performance.now() + CANCEL_MS;
  let cancelled = 0;
  for (const { no } of runs) {
    if (performance.now() > until) {
      if (wanted !== undefined) return { cancelled };
      throw new HttpError(
        'backend_unavailable',
        `${cancelled} runs were cancelled, for more there was no time. Call again.`,
      );
    }
    if (await workflow.runs.cancelOne(no)) cancelled += 1;
  }
  const isAll = next === undefined || runs.length === wanted;
  if (isAll) return { cancelled };
  const cursor = runCursorText(next);
  if (cancelled > 0) return { cancelled, cursor };
  // callers go on until 0 is answered: where the search has not come to its end that would be untrue
  throw new HttpError(
    'backend_unavailable',
    `Nothing that fits was found in time; call again with cursor=${cursor} to go on from there.`,
  );
}

async function cancelMany(request: RawRequest, deps: QueueDeps): Promise<RawReply> {
  const options = { flags: ['workflowUrlExactMatch'], idsWin: true };
  const { ids, query } = await readSelection(request, 'workflowRunIds', CANCEL_KEYS, options);
  // what goes with ids counts for nothing, but must be right
  const filters = readCancelFilters(query);
  const count = query.count('count', CANCELLED, MAX_CANCELLED);
  const after = readRunCursor(query);
  const found =
    ids === undefined
      ? await deps.workflow.search.find(filters, count, after)
      : await deps.workflow.search.findOpen(ids);
  const reply = await cancelFound(found, ids === undefined ? count : undefined, deps);
  return { status: 200, body: JSON.stringify(reply) };
}

const cancelWorkflowRuns: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.cancelWorkflowRuns',
  audit: 'destructive',
  summary:
    'Cancels the workflow runs with these ids that are under way, or at most `count` that fit the filters, those that began last first; without either, any. `workflowUrl` is the beginning of a URL unless workflowUrlExactMatch=true. Ids and filters may stand in a JSON body instead. Call it until it answers 0.',
  methods: ['DELETE'],
  changesData: true,
  path: '/v2/workflows/runs',
  request: {
    query: z.object(
      Object.fromEntries(['workflowRunIds', ...CANCEL_KEYS].map((key) => [key, z.string().optional()])),
    ),
  },
  reply: cancelReply,
  errors: [400, 401, 403, 503],
  handle: (request, _context, deps) => cancelMany(request, deps),
};

const getWorkflowRunSteps: RawRoute<QueueDeps> = {
  kind: 'raw',
  prefix: true,
  operationId: 'queue.getWorkflowRunSteps',
  summary:
    'The steps of a workflow run that is under way, as they were posted: what its deliveries have as body, which the SDKs fetch here where it is too long for one.',
  methods: ['GET'],
  path: '/v2/workflows/runs',
  documentedPath: '/v2/workflows/runs/:id',
  reply: z.array(
    z.object({
      messageId: z.string(),
      body: z.string().describe('Base64.'),
      callType: z.literal('step'),
    }),
  ),
  errors: [400, 401, 404, 503],
  handle: async (request, _context, { workflow }) => {
    const id = idOf(request);
    const steps = await workflow.runs.steps(id);
    if (steps === undefined) throw new HttpError('not_found', `There is no workflow run ${id} under way.`);
    return arrayOfTexts(steps, stepTexts);
  },
};

export const workflowRunRoutes = [cancelWorkflowRuns, getWorkflowRunSteps, endWorkflowRun] as const;
