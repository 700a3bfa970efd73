import { z } from 'zod';
import { HttpError } from '../../../http/errors.js';
import { Pieces, type RawRequest, type RawRoute } from '../../../http/route.js';
import type { QueueDeps } from '../deps.js';
import { unavailable } from '../errors.js';
import { workflowLogsReply } from '../schemas.js';
import { gathered, logPage } from '../workflow/run-log.js';
import { Query } from './query.js';
import { LOG_KEYS, readLogFilters, readRunCursor, runCursorText } from './run-filters.js';

/** Runs of a page. Who asks for more gets the cursor to them. */
const MAX_RUNS = 10;
const MAX_COUNT = 1_000_000;

async function listRuns({ target }: RawRequest, { workflow }: QueueDeps): Promise<Pieces> {
  const query = new Query(target);
  query.allowOnly([...LOG_KEYS, 'groupBy']);
  const groupBy = query.first('groupBy') ?? 'workflowRunId';
  if (groupBy !== 'workflowRunId') throw new HttpError('invalid_request', 'groupBy: expected workflowRunId');
  const filters = readLogFilters(query);
  const count = Math.min(MAX_RUNS, query.count('count', MAX_RUNS, MAX_COUNT));
  const found = await workflow.search.find(filters, count, readRunCursor(query));
  return new Pieces('application/json; charset=utf-8', page(found, workflow));
}

async function* page(found: Parameters<typeof logPage>[0], { records }: QueueDeps['workflow']) {
  let hasBegun = false;
  try {
    for await (const text of gathered(
      logPage(
        found,
        runCursorText,
        records.forReply(() => hasBegun),
      ),
    )) {
      hasBegun = true;
      yield text;
    }
  } catch (error) {
    throw unavailable(error);
  }
}

function logRoute(path: string, operationId: string): RawRoute<QueueDeps> {
  const keys = path.endsWith('events') ? [...LOG_KEYS, 'groupBy'] : LOG_KEYS;
  return {
    kind: 'raw',
    operationId,
    summary:
      'What happened in workflow runs, those that began last first: at most 10 of them, fewer where their steps are long. The last page has no cursor. Where a filter fits few of very many runs a page may have fewer, even none, and a cursor.',
    methods: ['GET'],
    path,
    request: { query: z.object(Object.fromEntries(keys.map((name) => [name, z.string().optional()]))) },
    reply: workflowLogsReply,
    errors: [400, 401, 503],
    handle: (request, _context, deps) => listRuns(request, deps),
  };
}

export const workflowLogRoutes = [
  logRoute('/v2/workflows/events', 'queue.workflowEvents'),
  logRoute('/v2/workflows/logs', 'queue.workflowLogs'),
] as const;
