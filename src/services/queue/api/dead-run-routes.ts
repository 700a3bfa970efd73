import { z } from 'zod';
import { HttpError } from '../../../http/errors.js';
import type { RawReply, RawRequest, RawRoute } from '../../../http/route.js';
import type { QueueDeps } from '../deps.js';
import { asText } from '../intake/control-headers.js';
import { deadLetterReply, deadLettersReply, deletedReply } from '../schemas.js';
import type { Copied } from '../workflow/dead-run-rows.js';
import type { MadeRun } from '../workflow/dead-runs.js';
import {
  chosenLetters,
  chunkOf,
  goOnText,
  letterKeys,
  listLetters,
  oneLetter,
} from './dead-letter-routes.js';

const madeRun = z.object({
  workflowRunId: z.string(),
  workflowCreatedAt: z.number().describe('Unix time in ms.'),
});
const madeRuns = z.object({
  workflowRuns: z.array(madeRun),
  cursor: z.string().describe('Empty: there is no more.'),
});

/** Runs that one call makes at most. */
const MAX_RUNS = 50;
/** Each run is made by itself: after this, in ms, no further one is begun, so that the reply comes in time. */
const MAX_MS = 5_000;

const runView = ({ runId, createdMs }: MadeRun): z.output<typeof madeRun> => ({
  workflowRunId: runId,
  workflowCreatedAt: createdMs,
});

const json = (value: unknown): RawReply => ({ status: 200, body: JSON.stringify(value) });

const idOf = ({ target }: RawRequest): string => /^\/([^/?]+)/.exec(target)?.[1] ?? '';

const missing = (id: string) =>
  new HttpError('not_found', `There is no dead letter ${id} of a workflow run.`);

const listDeadRuns: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.listDeadRuns',
  summary: 'Dead letters of workflow runs that failed; filters, order and cursor as of all dead letters.',
  methods: ['GET'],
  path: '/v2/workflows/dlq',
  request: { query: letterKeys },
  reply: deadLettersReply,
  errors: [400, 401, 503],
  handle: async (request, _context, deps) => json(await listLetters(request, 'workflow', deps)),
};

const getDeadRun: RawRoute<QueueDeps> = {
  kind: 'raw',
  prefix: true,
  operationId: 'queue.getDeadRun',
  summary: 'The dead letter of a workflow run that failed.',
  methods: ['GET'],
  path: '/v2/workflows/dlq',
  documentedPath: '/v2/workflows/dlq/:id',
  reply: deadLetterReply,
  errors: [400, 401, 404, 503],
  handle: async (request, _context, deps) => {
    const letter = await oneLetter(idOf(request), 'workflow', deps);
    if (letter === undefined) throw missing(idOf(request));
    return json(letter);
  },
};

const deleteDeadRuns: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.deleteDeadRuns',
  audit: 'destructive',
  summary:
    'Removes dead letters of workflow runs by id, or at most `count` by filter; while there may be more the reply has a cursor.',
  methods: ['DELETE'],
  changesData: true,
  path: '/v2/workflows/dlq',
  request: { query: letterKeys },
  reply: deletedReply,
  errors: [400, 401, 403, 503],
  handle: async (request, _context, deps) => {
    const { wanted, ids, query } = await chosenLetters(request, 'workflow', deps);
    const { pieces, next } = await deps.deadLetters.find(wanted, chunkOf(query, ids));
    let deleted = 0;
    for (const piece of pieces) deleted += await deps.deadLetters.delete(piece);
    return json({ deleted, ...(next === undefined ? {} : { cursor: goOnText(next) }) });
  },
};

const deleteDeadRun: RawRoute<QueueDeps> = {
  kind: 'raw',
  prefix: true,
  operationId: 'queue.deleteDeadRun',
  summary: 'Removes the dead letter of a workflow run.',
  methods: ['DELETE'],
  changesData: true,
  path: '/v2/workflows/dlq',
  documentedPath: '/v2/workflows/dlq/:id',
  reply: deletedReply,
  errors: [400, 401, 403, 404, 503],
  handle: async (request, _context, deps) => {
    const id = idOf(request);
    const isOne = (await oneLetter(id, 'workflow', deps)) !== undefined;
    const deleted = isOne ? await deps.deadLetters.delete([id]) : 0;
    if (deleted === 0) throw missing(id);
    return json({ deleted });
  },
};

/** Makes runs of those that fit, one after the other, as many as there is time for. */
async function againMany(request: RawRequest, what: Copied, deps: QueueDeps): Promise<RawReply> {
  const { wanted, ids, query } = await chosenLetters(request, 'workflow', deps);
  if (ids !== undefined && ids.length > MAX_RUNS)
    throw new HttpError('invalid_request', `dlqIds: more than ${MAX_RUNS}`);
  const chunk = chunkOf(query, ids, MAX_RUNS);
  const { pieces, next } = await deps.deadLetters.find(wanted, chunk);
  const headers = asText(request.headers);
  const until = performance.now() + MAX_MS;
  const workflowRuns: z.output<typeof madeRun>[] = [];
  let isWhole = true;
  for (const id of pieces.flat()) {
    isWhole = performance.now() < until;
    if (!isWhole) break;
    const made = await deps.workflow.dead.again(id, what, headers).catch((error: unknown) => {
      // the reply has to name those that were made
      if (workflowRuns.length === 0) throw error;
      isWhole = false;
      return undefined;
    });
    if (!isWhole) break;
    if (made !== undefined) workflowRuns.push(runView(made));
  }
  if (ids !== undefined && workflowRuns.length === 0 && isWhole) throw missing(ids.join(', '));
  // the letters of those that were made are gone: where some are left, the search begins where it began
  return json({ workflowRuns, cursor: isWhole ? goOnText(next) : goOnText(chunk.after ?? 'start') });
}

const again = (name: 'resume' | 'restart', what: Copied, summary: string): RawRoute<QueueDeps>[] => {
  const title = name === 'resume' ? 'Resume' : 'Restart';
  return [
    {
      kind: 'raw',
      operationId: `queue.${name}DeadRuns`,
      summary: `${summary} By id or at most 50 by filter; while there may be more the reply has a cursor. Instructions of the request override those of the runs.`,
      methods: ['POST'],
      changesData: true,
      path: `/v2/workflows/dlq/${name}`,
      request: { query: letterKeys },
      reply: madeRuns,
      errors: [400, 401, 403, 404, 412, 503],
      handle: (request, _context, deps) => againMany(request, what, deps),
    },
    {
      kind: 'raw',
      prefix: true,
      operationId: `queue.${name}DeadRun`,
      summary: `${title}s one failed workflow run as a new one.`,
      methods: ['POST'],
      changesData: true,
      path: `/v2/workflows/dlq/${name}`,
      documentedPath: `/v2/workflows/dlq/${name}/:id`,
      reply: madeRun,
      errors: [400, 401, 403, 404, 412, 503],
      handle: async (request, _context, deps) => {
        const made = await deps.workflow.dead.again(idOf(request), what, asText(request.headers));
        if (made === undefined) throw missing(idOf(request));
        return json(runView(made));
      },
    },
  ];
};

const callFailureFunction: RawRoute<QueueDeps> = {
  kind: 'raw',
  prefix: true,
  operationId: 'queue.callFailureFunction',
  summary: 'Calls the failure function of a failed workflow run again, after it has failed itself.',
  methods: ['POST'],
  changesData: true,
  path: '/v2/workflows/dlq/callback',
  documentedPath: '/v2/workflows/dlq/callback/:id',
  reply: madeRun,
  errors: [400, 401, 403, 404, 503],
  handle: async (request, _context, deps) => {
    const run = await deps.workflow.dead.callFailureFunction(idOf(request));
    if (run === undefined) throw missing(idOf(request));
    return json(runView(run));
  },
};

export const deadRunRoutes = [
  listDeadRuns,
  deleteDeadRuns,
  ...again(
    'resume',
    'done',
    'Goes on with failed workflow runs where they failed, as new runs: what was done stays done.',
  ),
  ...again('restart', 'start', 'Starts failed workflow runs again, as new runs, with the same payload.'),
  callFailureFunction,
  getDeadRun,
  deleteDeadRun,
] as const;
