import { z } from 'zod';
import { HttpError } from '../../../http/errors.js';
import { jsonRoute, type RawRequest, type RawRoute } from '../../../http/route.js';
import type { QueueDeps } from '../deps.js';
import { asText } from '../intake/control-headers.js';
import { resendDeadLetters, resendInTime } from '../intake/dead-letter-resend.js';
import { canonicalHeaders } from '../message/message.js';
import { allResentReply, deadLetterReply, deadLettersReply, deletedReply, resentReply } from '../schemas.js';
import {
  type DeadLetterCursor,
  type DeadLetterQuery,
  PARAMETERS_BEFORE,
} from '../store/dead-letter-search.js';
import type { DeadLetter } from '../store/dead-letter-store.js';
import { tableOf } from '../store/statements.js';
import type { Run } from '../workflow/run.js';
import { type FilterOptions, filterKeys, readFilters, readTime } from './filters.js';
import { bodyView, messageView, present } from './message-view.js';
import { type Query, unixMs } from './query.js';
import { readSelection } from './selection.js';

const route = jsonRoute<QueueDeps>();

const MAX_COUNT = 100;

/** What a dead letter is of: a message, or a workflow run. */
export type LetterSource = 'queue' | 'workflow';

const ofRun = (runs: string, sql: string) =>
  `exists (select from ${runs} r where r.no = m.run_no and ${sql} = any($::text[]))`;

/** @param schema with the tables */
function filtersOf(schema: string): FilterOptions {
  const runs = tableOf(schema, 'workflow_runs');
  return {
    fields: [
      ...['messageId', 'url', 'topicName', 'scheduleId', 'queueName', 'callerIp', 'callerIP', 'label'],
      'flowControlKey',
    ],
    others: {
      responseStatus: 'm.failure_status::text = any($::text[])',
      source: `case when m.run_no is null then 'queue' else 'workflow' end = any($::text[])`,
      workflowRunId: ofRun(runs, 'r.id'),
      workflowUrl: ofRun(runs, 'r.url'),
      workflowCreatedAt: ofRun(runs, 'r.created_ms::text'),
      failureFunctionState: ofRun(runs, `r.failure #>> '{callback,state}'`),
    },
  };
}
const KEYS = [...filterKeys(filtersOf('')), 'count', 'cursor', 'order'];

export const letterKeys = z.object(
  Object.fromEntries(['dlqIds', ...KEYS].map((key) => [key, z.string().optional()])),
);

function letterView(letter: DeadLetter, runs: ReadonlyMap<string, Run>): Record<string, unknown> {
  const { run: place } = letter.message;
  const run = place && runs.get(place.no);
  return present({
    ...messageView(letter.message),
    ...(run === undefined ? {} : runFields(run)),
    dlqId: letter.dlqId,
    responseStatus: letter.status,
    responseHeader: canonicalHeaders(letter.headers),
    ...bodyView('responseBody', letter.body),
    ...(letter.error === null ? {} : { error: letter.error }),
  });
}

/** What is told of the run that a dead letter is of. */
function runFields({ id, createdMs, url, settings, failure }: Run): Record<string, unknown> {
  const callback = failure?.callback;
  return {
    workflowRunId: id,
    workflowCreatedAt: createdMs,
    workflowUrl: url,
    failureCallback: settings.failure?.url,
    failureCallbackInfo: callback
      ? present({
          state: callback.state,
          responseStatus: callback.status,
          responseHeader: callback.headers,
          responseBody: callback.body,
        })
      : undefined,
  };
}

/** What is shown of letters, with what is told of their runs. */
async function letterViews(
  letters: readonly DeadLetter[],
  { workflow }: QueueDeps,
): Promise<Record<string, unknown>[]> {
  const nos = letters.flatMap(({ message }) => message.run?.no ?? []);
  const runs = nos.length === 0 ? new Map<string, Run>() : await workflow.runs.byNumbers(nos);
  return letters.map((letter) => letterView(letter, runs));
}

/** What a request is about; `ids` when it names letters by id. @param source those alone */
export async function chosenLetters(
  request: RawRequest,
  source: LetterSource | undefined,
  { config }: QueueDeps,
): Promise<{
  wanted: DeadLetterQuery;
  ids: readonly string[] | undefined;
  query: Query;
}> {
  const { ids, query } = await readSelection(request, 'dlqIds', KEYS);
  const only = { sql: `m.run_no is ${source === 'workflow' ? 'not null' : 'null'}`, values: [] };
  if (ids !== undefined)
    return { wanted: { ids, ...(source === undefined ? {} : { conditions: only }) }, ids, query };
  refuseWrongValues(query);
  const filters = readFilters(query, filtersOf(config.schema), PARAMETERS_BEFORE);
  const wanted = {
    messageIds: query.list('messageId'),
    from: readTime(query, 'fromDate'),
    to: readTime(query, 'toDate'),
    conditions: source === undefined ? filters : { ...filters, sql: `${only.sql} and (${filters.sql})` },
  };
  return { wanted, ids, query };
}

/** Of filters that cannot have just any text: what a value of them looks like, and how that is said. */
const FORMS: Readonly<Record<string, readonly [RegExp, string]>> = {
  responseStatus: [/^(0|[1-9]\d{2})$/, 'a status, or 0 for none'],
  source: [/^(queue|workflow)$/, 'queue or workflow'],
};

/** @throws HttpError 400 for a value that no letter can have: whoever sent it meant something else */
function refuseWrongValues(query: Query): void {
  for (const [key, [form, expected]] of Object.entries(FORMS))
    if (query.list(key)?.some((value) => !form.test(value)) === true)
      throw new HttpError('invalid_request', `${key}: expected ${expected}`);
  for (const text of query.list('workflowCreatedAt') ?? []) unixMs('workflowCreatedAt', text);
}

/** What a call that changes much takes: all named letters, or the next that fit. */
export function chunkOf(query: Query, ids: readonly string[] | undefined, most = MAX_COUNT) {
  const order = query.first('order') ?? 'earliestFirst';
  if (order !== 'earliestFirst')
    throw new HttpError('invalid_request', 'order: such a call takes the earliest first');
  const count = Math.min(most, query.count('count', most, MAX_COUNT));
  return { count: ids?.length ?? count, latestFirst: false, after: readCursor(query) };
}

/** Where a call that changed some goes on; empty: there is no more. @param start from the very beginning */
export const goOnText = (cursor: DeadLetterCursor | 'start' | undefined): string =>
  cursor === undefined ? '' : cursorOf(cursor === 'start' ? START : cursor);

const cursorOf = ({ place, dlqId }: DeadLetterCursor) => `${place}.${dlqId}`;
/** Of the very beginning. */
const START: DeadLetterCursor = { place: '0', dlqId: '0-0' };

function readCursor(query: Query): DeadLetterCursor | undefined {
  const text = query.first('cursor');
  if (text === undefined || text === '') return undefined;
  const [, place, dlqId] = /^(\d{1,18})\.(\d+-\d+)$/.exec(text) ?? [];
  if (place === undefined || dlqId === undefined)
    throw new HttpError('invalid_request', 'cursor: is none that this service gave out');
  return { place, dlqId };
}

const listDeadLetters: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.listDeadLetters',
  summary:
    'Dead letters by id or filter, earliest first unless order=latestFirst; the last page has no cursor. Where a filter fits few of very many a page may have fewer than `count`, even none, and a cursor.',
  methods: ['GET'],
  path: '/v2/dlq',
  request: { query: letterKeys },
  reply: deadLettersReply,
  errors: [400, 401, 503],
  handle: (request, { signal }, deps) =>
    deps.listings.page(
      async () => ({ status: 200, body: JSON.stringify(await listLetters(request, undefined, deps)) }),
      signal,
    ),
};

/** A page of dead letters. @param source those alone */
export async function listLetters(
  request: RawRequest,
  source: LetterSource | undefined,
  deps: QueueDeps,
): Promise<{ messages: Record<string, unknown>[]; cursor?: string }> {
  const { wanted, query } = await chosenLetters(request, source, deps);
  const order = query.first('order') ?? 'earliestFirst';
  if (order !== 'earliestFirst' && order !== 'latestFirst')
    throw new HttpError('invalid_request', 'order: expected earliestFirst or latestFirst');
  const { letters, next } = await deps.deadLetters.list(wanted, {
    count: query.count('count', MAX_COUNT, MAX_COUNT),
    latestFirst: order === 'latestFirst',
    after: readCursor(query),
  });
  const cursor = next === undefined ? {} : { cursor: cursorOf(next) };
  return { messages: await letterViews(letters, deps), ...cursor };
}

/** One dead letter. @param source of that alone */
export async function oneLetter(
  id: string,
  source: LetterSource | undefined,
  deps: QueueDeps,
): Promise<Record<string, unknown> | undefined> {
  const page = { count: 1, latestFirst: false, after: undefined };
  const { letters } = await deps.deadLetters.list({ ids: [id] }, page);
  const [letter] = letters;
  if (letter === undefined || (source === 'workflow' && letter.message.run === undefined)) return undefined;
  return (await letterViews(letters, deps))[0];
}

const getDeadLetter = route({
  operationId: 'queue.getDeadLetter',
  summary: 'One dead letter with the last response.',
  methods: ['GET'],
  path: '/v2/dlq/:id',
  request: { params: z.object({ id: z.string() }) },
  reply: deadLetterReply,
  errors: [400, 401, 404, 503],
  handle: async ({ params: { id } }, _context, deps) => {
    const letter = await oneLetter(id, undefined, deps);
    if (letter === undefined) throw new HttpError('not_found', `There is no dead letter ${id}.`);
    return letter as z.output<typeof deadLetterReply>;
  },
});

const deleteDeadLetter = route({
  operationId: 'queue.deleteDeadLetter',
  summary: 'Removes a dead letter.',
  methods: ['DELETE'],
  changesData: true,
  path: '/v2/dlq/:id',
  request: { params: z.object({ id: z.string() }) },
  reply: deletedReply,
  errors: [400, 401, 403, 404, 503],
  handle: async ({ params: { id } }, _context, { deadLetters }) => {
    const deleted = await deadLetters.delete([id]);
    if (deleted === 0) throw new HttpError('not_found', `There is no dead letter ${id}.`);
    return { deleted };
  },
});

const deleteDeadLetters: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.deleteDeadLetters',
  audit: 'destructive',
  summary:
    'Removes dead letters by id, or at most `count` by filter; while there may be more the reply has a cursor, with which the next call goes on.',
  methods: ['DELETE'],
  changesData: true,
  path: '/v2/dlq',
  request: { query: letterKeys },
  reply: deletedReply,
  errors: [400, 401, 403, 503],
  handle: async (request, _context, deps) => {
    const { deadLetters } = deps;
    const { wanted, ids, query } = await chosenLetters(request, undefined, deps);
    const { pieces, next } = await deadLetters.find(wanted, chunkOf(query, ids));
    let deleted = 0;
    for (const piece of pieces) deleted += await deadLetters.delete(piece);
    const cursor = next === undefined ? {} : { cursor: cursorOf(next) };
    return { status: 200, body: JSON.stringify({ deleted, ...cursor }) };
  },
};

const resend: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.retryDeadLetters',
  summary:
    'Sends dead letters again, as new messages, by id or at most `count` by filter; while there may be more the reply has a cursor, with which the next call goes on. Instructions of the request override those of the messages.',
  methods: ['POST'],
  changesData: true,
  path: '/v2/dlq/retry',
  request: { query: letterKeys },
  reply: allResentReply,
  replyStatus: 201,
  errors: [400, 401, 403, 429, 503],
  handle: async (request, _context, deps) => {
    const { wanted, ids, query } = await chosenLetters(request, undefined, deps);
    const chunk = chunkOf(query, ids);
    const { pieces, next } = await deps.deadLetters.find(wanted, chunk);
    const sent = await resendInTime(pieces, asText(request.headers), deps);
    const responses = sent.ids.map((messageId) => ({ messageId }));
    // those that were sent are gone: where some were left, the search begins where it began
    const goOn = sent.isWhole ? next : (chunk.after ?? START);
    return {
      status: 201,
      body: JSON.stringify({ cursor: goOn === undefined ? '' : cursorOf(goOn), responses }),
    };
  },
};

const resendOne = {
  kind: 'raw',
  prefix: true,
  operationId: 'queue.retryDeadLetter',
  summary: 'Sends one dead letter again, as a new message.',
  methods: ['POST'],
  changesData: true,
  path: '/v2/dlq/retry',
  documentedPath: '/v2/dlq/retry/:id',
  reply: resentReply,
  replyStatus: 201,
  errors: [400, 401, 403, 404, 412, 429, 503],
  handle: async (request, _context, deps) => {
    const id = /^\/([^/?]*)/.exec(request.target)?.[1] ?? '';
    const [messageId] = await resendDeadLetters([id], asText(request.headers), deps);
    if (messageId !== undefined) return { status: 201, body: JSON.stringify({ messageId }) };
    if ((await oneLetter(id, 'workflow', deps)) !== undefined)
      throw new HttpError(
        'not_served',
        `The dead letter ${id} is of a workflow run: POST /v2/workflows/dlq/resume/${id} goes on with it.`,
      );
    throw new HttpError('not_found', `There is no dead letter ${id}.`);
  },
} satisfies RawRoute<QueueDeps>;

export const deadLetterRoutes = [
  listDeadLetters,
  deleteDeadLetters,
  // before the paths with an id, which would take `retry` for one
  resend,
  getDeadLetter,
  deleteDeadLetter,
  resendOne,
] as const;
