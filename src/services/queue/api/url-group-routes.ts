import { z } from 'zod';
import { HttpError } from '../../../http/errors.js';
import { jsonRoute } from '../../../http/route.js';
import { boundedHeaders, boundedList } from '../../../lib/bounded-list.js';
import type { QueueDeps } from '../deps.js';
import { Controls } from '../intake/control-headers.js';
import { checkDestination } from '../intake/destination.js';
import { readPublishOptions } from '../intake/publish-options.js';
import { nothingReply, urlGroupReply } from '../schemas.js';
import { checkName } from '../store/names.js';
import type { UrlGroup } from '../store/url-groups.js';
import { arrayReply } from './array-reply.js';

const route = jsonRoute<QueueDeps>();

/** Postgres' indexes take 2,700 bytes. */
const MAX_URL = 2_000;
/** Default headers of a group, and values of each. */
const MAX_HEADERS = 2_000;

const params = z.object({ group: z.string() });
const endpointsBody = z.object({
  endpoints: boundedList(z.object({ name: z.string().nullish(), url: z.string().nullish() }), {
    min: 1,
    max: 10_000,
    of: 'endpoints',
  }),
});
const headersBody = z.object({
  headers: boundedHeaders(
    z.record(z.string(), z.union([z.string(), boundedList(z.string(), { max: MAX_HEADERS, of: 'values' })])),
    MAX_HEADERS,
  ),
});

function view({ name, createdAt, updatedAt, endpoints }: UrlGroup) {
  return {
    name,
    createdAt: Math.round(createdAt),
    updatedAt: Math.round(updatedAt),
    endpoints: [...endpoints],
  };
}

/** Without what is absent. */
function given<T extends { name?: string | null | undefined; url?: string | null | undefined }>({
  name,
  url,
}: T) {
  return { ...(name ? { name } : {}), ...(url ? { url } : {}) };
}

const listGroups = route({
  operationId: 'queue.listUrlGroups',
  summary: 'All URL groups.',
  methods: ['GET'],
  path: '/v2/topics',
  request: {},
  reply: z.array(urlGroupReply),
  errors: [401, 503],
  handle: async (_input, _context, { groups }) => arrayReply(groups.list(), view),
});

const getGroup = route({
  operationId: 'queue.getUrlGroup',
  summary: 'A URL group with its endpoints.',
  methods: ['GET'],
  path: '/v2/topics/:group',
  request: { params },
  reply: urlGroupReply,
  errors: [400, 401, 404, 503],
  handle: async ({ params: { group: name } }, _context, { groups }) => {
    const group = await groups.find(name);
    if (group === undefined) throw new HttpError('not_found', `There is no URL group ${name}.`);
    return view(group);
  },
});

const deleteGroup = route({
  operationId: 'queue.deleteUrlGroup',
  audit: 'destructive',
  summary: 'Deletes a URL group; messages that it already became are delivered. No error when there is none.',
  methods: ['DELETE'],
  changesData: true,
  path: '/v2/topics/:group',
  request: { params },
  reply: nothingReply,
  errors: [400, 401, 403, 503],
  handle: async ({ params: { group } }, _context, { groups }) => {
    await groups.delete(group);
    return {};
  },
});

const setGroupHeaders = route({
  operationId: 'queue.setUrlGroupHeaders',
  audit: 'administrative',
  summary: "Sets the group's default instructions, for messages that bring none of their own.",
  methods: ['PATCH'],
  changesData: true,
  path: '/v2/topics/:group',
  request: { params, body: headersBody },
  reply: nothingReply,
  errors: [400, 401, 403, 412, 503],
  handle: async ({ params: { group }, body }, _context, { groups, config, guard, now }) => {
    checkName(group, 'URL group');
    const headers = Object.fromEntries(
      Object.entries(body.headers).map(([name, value]) => [name.toLowerCase(), [value].flat().join(', ')]),
    );
    const stranger = Object.keys(headers).find((name) => !/^(upstash|service)-/.test(name));
    if (stranger !== undefined)
      throw new HttpError(
        'invalid_request',
        `${stranger}: only Upstash-* and Service-* headers have defaults`,
      );
    readPublishOptions(new Controls({}, new Map(), headers), {}, { limits: config, guard, now: now() });
    await groups.setHeaders(group, headers);
    return {};
  },
});

const addEndpoints = route({
  operationId: 'queue.addEndpoints',
  audit: 'administrative',
  summary:
    'Adds endpoints to a URL group, which is made if need be, or changes those with the same name or URL.',
  methods: ['POST'],
  changesData: true,
  path: '/v2/topics/:group/endpoints',
  request: { params, body: endpointsBody },
  reply: nothingReply,
  errors: [400, 401, 403, 412, 503],
  handle: async ({ params: { group }, body }, _context, { groups, guard }) => {
    checkName(group, 'URL group');
    const endpoints = body.endpoints.map((endpoint) => {
      const { name, url } = given(endpoint);
      if (url === undefined) throw new HttpError('invalid_request', 'Each endpoint needs a url.');
      if (url.length > MAX_URL)
        throw new HttpError('invalid_request', `The URL of an endpoint has at most ${MAX_URL} characters.`);
      checkDestination(url, 'The URL of an endpoint', guard);
      if (name !== undefined) checkName(name, 'endpoint');
      return { ...(name === undefined ? {} : { name }), url };
    });
    await groups.add(group, endpoints);
    return {};
  },
});

const removeEndpoints = route({
  operationId: 'queue.removeEndpoints',
  audit: 'administrative',
  summary: 'Removes endpoints by name or URL; with the last one the group goes.',
  methods: ['DELETE'],
  changesData: true,
  path: '/v2/topics/:group/endpoints',
  request: { params, body: endpointsBody },
  reply: nothingReply,
  errors: [400, 401, 403, 404, 503],
  handle: async ({ params: { group }, body }, _context, { groups }) => {
    const endpoints = body.endpoints.map(given);
    if (endpoints.some(({ name, url }) => name === undefined && url === undefined))
      throw new HttpError('invalid_request', 'Each endpoint needs a name or a url.');
    if (!(await groups.remove(group, endpoints)))
      throw new HttpError('not_found', `There is no URL group ${group}.`);
    return {};
  },
});

export const urlGroupRoutes = [
  listGroups,
  getGroup,
  deleteGroup,
  setGroupHeaders,
  addEndpoints,
  removeEndpoints,
] as const;
