import { HttpError } from '../../../http/errors.js';
import { type JsonRoute, jsonRoute, type RouteContext } from '../../../http/route.js';
import { ADMINISTRATOR } from '../index-tokens.js';
import type { ManagedIndexes } from '../managed/managed-indexes.js';
import {
  alterIndexBody,
  createIndexBody,
  indexesReply,
  indexParams,
  indexReply,
} from '../schemas/indexes.js';
import { successReply } from '../schemas/replies.js';
import { successAfter } from './index-route.js';

/** What the routes of indexes made at run time work with. */
export interface ManagedDeps {
  readonly indexes: ManagedIndexes;
}

const route = jsonRoute<ManagedDeps>();

const ALL = { path: '/', documentedPath: '/indexes' } as const;
const ONE = { path: '/:index', documentedPath: '/indexes/:index' } as const;

/** @throws HttpError 403 for the token of an index */
function asAdministrator({ principal }: RouteContext, { indexes }: ManagedDeps): ManagedIndexes {
  if (principal !== ADMINISTRATOR) throw new HttpError('forbidden');
  return indexes;
}

const list = route({
  ...ALL,
  operationId: 'vector.listIndexes',
  summary: 'All indexes, those of the configuration too. By the administrator, as all of these.',
  methods: ['GET'],
  request: {},
  reply: indexesReply,
  errors: [403],
  handle: async (_input, context, deps) => ({ result: await asAdministrator(context, deps).list() }),
});

const create = route({
  ...ALL,
  operationId: 'vector.createIndex',
  summary: 'Makes an index, which is served below this path at once, and shows its tokens.',
  methods: ['POST'],
  changesData: true,
  audit: 'administrative',
  request: { body: createIndexBody },
  reply: indexReply,
  errors: [400, 403, 409, 422],
  handle: async ({ body }, context, deps) => ({
    result: await asAdministrator(context, deps).create(body),
  }),
});

const describe = route({
  ...ONE,
  operationId: 'vector.describeIndex',
  summary: 'An index that was made at run time, with its tokens.',
  methods: ['GET'],
  request: { params: indexParams },
  reply: indexReply,
  errors: [403],
  handle: async ({ params }, context, deps) => ({
    result: await asAdministrator(context, deps).describe(params.index),
  }),
});

const alter = route({
  ...ONE,
  operationId: 'vector.alterIndex',
  summary: 'Changes limits, graphs or tokens of an index that was made at run time.',
  methods: ['PATCH'],
  changesData: true,
  audit: 'administrative',
  request: { params: indexParams, body: alterIndexBody },
  reply: indexReply,
  errors: [400, 403],
  handle: async ({ params, body }, context, deps) => ({
    result: await asAdministrator(context, deps).alter(params.index, body),
  }),
});

const drop = route({
  ...ONE,
  operationId: 'vector.dropIndex',
  summary: 'Drops an index that was made at run time, with all that it holds.',
  methods: ['DELETE'],
  changesData: true,
  audit: 'destructive',
  request: { params: indexParams },
  reply: successReply,
  errors: [403],
  handle: ({ params }, context, deps) => successAfter(asAdministrator(context, deps).drop(params.index)),
});

export const adminRoutes: readonly JsonRoute<ManagedDeps>[] = [list, create, describe, alter, drop];
