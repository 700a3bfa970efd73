import { z } from 'zod';
import { HttpError } from '../../../http/errors.js';
import type { RawReply, RawRequest, RawRoute } from '../../../http/route.js';
import type { QueueDeps } from '../deps.js';
import { periodSeconds, wholeCount } from '../intake/flow-control-value.js';
import type { FlowState } from '../order/flow-controls.js';
import { flowControlReply, globalParallelismReply, nothingReply } from '../schemas.js';
import { present } from './message-view.js';
import { Query } from './query.js';

const VERBS = ['pause', 'resume', 'pin', 'unpin', 'resetRate'] as const;

function view(state: FlowState): Record<string, unknown> {
  return present({
    flowControlKey: state.key,
    waitListSize: state.waiting,
    parallelismMax: state.parallelism ?? undefined,
    parallelismCount: state.running,
    rateMax: state.rate ?? undefined,
    rateCount: state.rateCount,
    ratePeriod: state.period,
    ratePeriodStart: state.periodStart,
    isPaused: state.paused,
    isPinnedParallelism: state.pinnedParallelism,
    isPinnedRate: state.pinnedRate,
  });
}

const ok = (body: unknown): RawReply => ({ status: 200, body: JSON.stringify(body) });

/** What stands behind the route's path; keys may hold slashes. */
function segmentsOf({ target }: RawRequest): string[] {
  const path = target.split('?', 1)[0] as string;
  return path
    .split('/')
    .filter((segment) => segment !== '')
    .map(decoded);
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new HttpError('invalid_request', 'The path is not percent-encoded rightly.');
  }
}

async function list({ target }: RawRequest, { flows }: QueueDeps): Promise<RawReply> {
  const query = new Query(target);
  query.allowOnly(['search']);
  return ok((await flows.list(null, query.first('search') ?? null)).map(view));
}

const listKeys: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.listFlowControl',
  summary: 'The first 1,000 flow-control keys by their names, with their limits and what is under way.',
  methods: ['GET'],
  path: '/v2/flowControl',
  request: { query: z.object({ search: z.string().optional().describe('A part of the key.') }) },
  reply: z.array(flowControlReply),
  errors: [400, 401, 503],
  handle: (request, _context, deps) => list(request, deps),
};

const readKey: RawRoute<QueueDeps> = {
  kind: 'raw',
  prefix: true,
  operationId: 'queue.getFlowControl',
  summary: 'A flow-control key with its limits and what is under way.',
  methods: ['GET'],
  path: '/v2/flowControl',
  documentedPath: '/v2/flowControl/:key',
  reply: flowControlReply,
  errors: [400, 401, 404, 503],
  handle: async (request, _context, deps) => {
    const { flows } = deps;
    const key = segmentsOf(request).join('/');
    if (key === '') return list(request, deps);
    const [state] = await flows.list(key);
    if (state === undefined) throw new HttpError('not_found', `There is no flow-control key ${key}.`);
    return ok(view(state));
  },
};

const changeKeys: RawRoute<QueueDeps> = {
  kind: 'raw',
  prefix: true,
  operationId: 'queue.changeFlowControl',
  audit: 'administrative',
  summary:
    'pause, resume, resetRate; pin (parallelism, rate, period in the query) fixes limits whatever messages say, unpin (parallelism=true, rate=true) ends that.',
  methods: ['POST'],
  changesData: true,
  path: '/v2/flowControl',
  documentedPath: '/v2/flowControl/:key/:verb',
  request: {
    params: z.object({ key: z.string(), verb: z.enum(VERBS) }),
    query: z.object({
      parallelism: z.string().optional().describe('pin: a number; unpin: true.'),
      rate: z.string().optional().describe('pin: a number; unpin: true.'),
      period: z.string().optional().describe('pin: of the rate, such as 60, 30s or 1d; 1 s without one.'),
    }),
  },
  reply: nothingReply,
  errors: [400, 401, 403, 404, 503],
  handle: async (request, _context, { flows, heldMessages }) => {
    const segments = segmentsOf(request);
    const verb = VERBS.find((known) => known === segments.at(-1));
    const key = segments.slice(0, -1).join('/');
    if (verb === undefined || key === '')
      throw new HttpError('not_found', `Expected /v2/flowControl/{key}/ and one of ${VERBS.join(', ')}.`);
    if (!(await change(flows, key, verb, new Query(request.target))))
      throw new HttpError('not_found', `There is no flow-control key ${key}.`);
    await heldMessages.releaseKey(key);
    return ok({});
  },
};

function change(
  flows: QueueDeps['flows'],
  key: string,
  verb: (typeof VERBS)[number],
  query: Query,
): Promise<boolean> {
  switch (verb) {
    case 'pause':
    case 'resume':
      return flows.setPaused(key, verb === 'pause');
    case 'resetRate':
      return flows.resetRate(key);
    case 'unpin': {
      query.allowOnly(['parallelism', 'rate']);
      const wants = (name: string) => query.first(name)?.toLowerCase() === 'true';
      return flows.unpin(key, { parallelism: wants('parallelism'), rate: wants('rate') });
    }
    case 'pin':
      return flows.pin(key, pinned(query));
  }
}

function pinned(query: Query): { parallelism?: number; rate?: number; period?: number } {
  query.allowOnly(['parallelism', 'rate', 'period']);
  const read = (name: string, parse: (text: string) => number | undefined) => {
    const text = query.first(name);
    const value = text === undefined ? undefined : parse(text);
    if (text !== undefined && value === undefined)
      throw new HttpError('invalid_request', `${name}: expected a number above zero`);
    return value === undefined ? {} : { [name]: value };
  };
  const wanted = {
    ...read('parallelism', wholeCount),
    ...read('rate', wholeCount),
    ...read('period', periodSeconds),
  };
  if (query.first('parallelism') === undefined && query.first('rate') === undefined)
    throw new HttpError('invalid_request', 'Name a parallelism, a rate or both.');
  return wanted;
}

const globalParallelism: RawRoute<QueueDeps> = {
  kind: 'raw',
  operationId: 'queue.globalParallelism',
  summary: 'How many deliveries a gateway has under way at most, and how many all gateways have now.',
  methods: ['GET'],
  path: '/v2/globalParallelism',
  request: { query: z.object({}) },
  reply: globalParallelismReply,
  errors: [401, 503],
  handle: async (_request, _context, { index, config }) =>
    ok({
      parallelismMax: config.concurrency + config.waitingConcurrency,
      parallelismCount: await index.running(),
    }),
};

export const flowControlRoutes = [listKeys, readKey, changeKeys, globalParallelism] as const;
