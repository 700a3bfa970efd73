import { HttpError } from '../../../http/errors.js';
import type { RunState } from '../workflow/run.js';
import { PARAMETERS_BEFORE, type RunCursor, type RunQuery } from '../workflow/run-search.js';
import { hostOf, pathOf, readFilters, readTime } from './filters.js';
import { type Query, unixMs } from './query.js';

/** Conditions on the run `r`, with `$` for the parameter: an array of the values, of which one must fit. */
const RUN_FIELDS = {
  label: 'r.labels && $::text[]',
  callerIp: 'r.caller_ip = any($::text[])',
  flowControlKey: 'r.flow_key = any($::text[])',
  host: `${hostOf('r.url')} = any($::text[])`,
  path: `${pathOf('r.url')} = any($::text[])`,
};
const EXACT_URL = { workflowUrl: 'r.url = any($::text[])' };
const URL_PREFIX = {
  workflowUrl: 'exists (select from unnest($::text[]) beginning where starts_with(r.url, beginning))',
};
const LOG_FIELDS = {
  ...RUN_FIELDS,
  ...EXACT_URL,
  state: 'r.state = any($::text[])',
  workflowCreatedAt: 'r.created_ms = any($::bigint[])',
};

const COMMON_KEYS = [...Object.keys(RUN_FIELDS), 'workflowUrl', 'fromDate', 'toDate', 'count', 'cursor'];

/** Filters of a bulk cancellation. */
export const CANCEL_KEYS = [...COMMON_KEYS, 'workflowUrlExactMatch'];

/** Filters of the log. */
export const LOG_KEYS = [
  ...COMMON_KEYS,
  ...['workflowRunId', 'workflowRuns', 'workflowCreatedAt', 'state', 'messageId'],
];

const STATES: ReadonlySet<string> = new Set<RunState>([
  'RUN_STARTED',
  'RUN_SUCCESS',
  'RUN_FAILED',
  'RUN_CANCELED',
]);

/** Which runs are to be cancelled: those under way that fit. A URL names all that begin with it. @throws HttpError 400 */
export function readCancelFilters(query: Query): RunQuery {
  const isExact = readFlag(query, 'workflowUrlExactMatch');
  const urls = query.whole('workflowUrl');
  // one without the other would mean every workflow
  if (query.has('workflowUrlExactMatch') && urls === undefined)
    throw new HttpError('invalid_request', 'workflowUrlExactMatch: goes with workflowUrl alone');
  if (urls?.some((url) => url.trim() === '') === true)
    throw new HttpError('invalid_request', 'workflowUrl: has no value');
  const fields = { ...RUN_FIELDS, ...(isExact ? EXACT_URL : URL_PREFIX) };
  return { ...common(query, fields), states: ['RUN_STARTED'] };
}

/** Which runs are to be shown. @throws HttpError 400 */
export function readLogFilters(query: Query): RunQuery {
  const states = query.list('state');
  for (const state of states ?? [])
    if (!STATES.has(state)) throw new HttpError('invalid_request', `state: there is no ${state}`);
  for (const time of query.list('workflowCreatedAt') ?? []) unixMs('workflowCreatedAt', time);
  const idsAndTimes = named(query, 'workflowRuns');
  if (idsAndTimes?.some((pair) => !/.@\d{1,15}$/.test(pair)) === true)
    throw new HttpError('invalid_request', 'workflowRuns: expected an id, @ and a Unix time in milliseconds');
  return {
    ...common(query, LOG_FIELDS),
    // an id may hold commas of its own
    ids: query.has('workflowRunId')
      ? union(named(query, 'workflowRunId'), query.whole('workflowRunId'))
      : undefined,
    idsAndTimes,
    messageIds: named(query, 'messageId'),
    urls: query.whole('workflowUrl'),
    states: states as RunState[] | undefined,
  };
}

export function readRunCursor(query: Query): RunCursor | undefined {
  const text = query.first('cursor') ?? '';
  if (text === '') return undefined;
  const [, createdMs, no] = /^(\d{1,15})-(\d{1,18})$/.exec(text) ?? [];
  if (createdMs === undefined || no === undefined)
    throw new HttpError('invalid_request', 'cursor: is none that this service gave out');
  return { createdMs, no };
}

export const runCursorText = ({ createdMs, no }: RunCursor) => `${createdMs}-${no}`;

function common(query: Query, others: Readonly<Record<string, string>>): RunQuery {
  return {
    from: readTime(query, 'fromDate'),
    to: readTime(query, 'toDate'),
    conditions: readFilters(query, { fields: [], others }, PARAMETERS_BEFORE),
  };
}

function named(query: Query, key: string): string[] | undefined {
  const values = query.list(key);
  if (values?.length === 0) throw new HttpError('invalid_request', `${key}: has no value`);
  return values;
}

function union(...lists: (readonly string[] | undefined)[]): string[] {
  return [...new Set(lists.flatMap((list) => list ?? []))];
}

function readFlag(query: Query, key: string): boolean {
  const text = query.first(key) ?? 'false';
  if (text === 'true' || text === 'false') return text === 'true';
  throw new HttpError('invalid_request', `${key}: expected true or false`);
}
