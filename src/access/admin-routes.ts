import type { z } from 'zod';
import { HttpError } from '../http/errors.js';
import { type JsonRoute, jsonRoute, Reply } from '../http/route.js';
import type { AccessStore } from './access-store.js';
import type { IssuedTokens } from './issued-tokens.js';
import * as schemas from './schemas.js';
import { digestOf, type Grant, isTokenId, newToken, newTokenId, type StoredToken } from './token.js';

/** What a service says of the tokens that may be made for it. */
export interface GrantTarget {
  readonly service: string;
  readonly instances: readonly string[];
  /** Of what a grant may hold beside its access; `undefined`: nothing. */
  readonly permissions: z.ZodType | undefined;
}

export interface AdminDeps {
  readonly store: AccessStore;
  readonly tokens: IssuedTokens;
  readonly targets: readonly GrantTarget[];
  readonly maxTokens: number;
  /** ms since 1970. */
  readonly now: () => number;
}

const route = jsonRoute<AdminDeps>();

export const adminRoutes: readonly JsonRoute<AdminDeps>[] = [
  route({
    operationId: 'admin.createToken',
    summary: 'Makes a token. It is valid in every gateway within a second, and shown this once.',
    methods: ['POST'],
    changesData: true,
    audit: 'administrative',
    path: '/v1/tokens',
    request: { body: schemas.createBody },
    reply: schemas.createdReply,
    replyStatus: 201,
    errors: [400, 412],
    handle: async ({ body }, context, deps) => {
      const token = newToken();
      const stored: StoredToken = { id: newTokenId(), digest: digestOf(token), record: recordOf(body, deps) };
      context.audit('administrative', { token: stored.id });
      if (!(await answered(deps.store.add(stored, deps.maxTokens))))
        throw new HttpError('limit_reached', `There are ${deps.maxTokens} tokens (admin.maxTokens).`);
      // whoever gets the reply may use it here at once
      await answered(deps.tokens.refresh());
      return new Reply(201, { ...viewOf(stored), token });
    },
  }),
  route({
    operationId: 'admin.listTokens',
    summary: 'The tokens that were made at run time, without themselves.',
    methods: ['GET'],
    path: '/v1/tokens',
    request: { query: schemas.listQuery },
    reply: schemas.tokensReply,
    errors: [400],
    handle: async ({ query: { cursor, limit } }, _context, { store }) => {
      const { tokens } = await answered(store.load());
      const all = [...tokens].sort((a, b) => (a.id < b.id ? -1 : 1));
      const rest = cursor === undefined ? all : all.filter(({ id }) => id > cursor);
      const page = rest.slice(0, limit);
      return {
        tokens: page.map(viewOf),
        ...(rest.length > limit ? { cursor: (page.at(-1) as StoredToken).id } : {}),
      };
    },
  }),
  route({
    operationId: 'admin.token',
    summary: 'One token, without itself.',
    methods: ['GET'],
    path: '/v1/tokens/:id',
    request: { params: schemas.idParams },
    reply: schemas.tokenReply,
    errors: [404],
    handle: async ({ params }, _context, { store }) => {
      const { tokens } = await answered(store.load());
      const found = tokens.find(({ id }) => id === params.id);
      if (found === undefined) throw noSuchToken();
      return viewOf(found);
    },
  }),
  route({
    operationId: 'admin.revokeToken',
    summary: 'Ends a token, in every gateway within a second; streams that it has open end too.',
    methods: ['DELETE'],
    changesData: true,
    audit: 'administrative',
    path: '/v1/tokens/:id',
    request: { params: schemas.idParams },
    reply: schemas.revokedReply,
    errors: [404],
    handle: async ({ params: { id } }, _context, { store, tokens }) => {
      if (!isTokenId(id) || !(await answered(store.remove(id)))) throw noSuchToken();
      await answered(tokens.refresh());
      return { id, revoked: true } as const;
    },
  }),
  route({
    operationId: 'admin.audit',
    summary: 'Destructive and administrative calls, the newest first.',
    methods: ['GET'],
    path: '/v1/audit',
    request: { query: schemas.auditQuery },
    reply: schemas.auditReply,
    errors: [400],
    handle: async ({ query: { cursor, limit } }, _context, { store }) => {
      const page = await answered(store.audit(cursor, limit));
      return {
        entries: [...page.entries],
        ...(page.cursor === undefined ? {} : { cursor: page.cursor }),
      };
    },
  }),
];

/** @throws HttpError 503 for whatever the store says: its words are the log's */
async function answered<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new HttpError('backend_unavailable', 'The store of tokens is not available.', { cause });
  }
}

const noSuchToken = () => new HttpError('not_found', 'There is no such token.');

function viewOf({ id, record }: StoredToken): z.input<typeof schemas.tokenReply> {
  return { ...(record as z.input<typeof schemas.tokenReply>), id };
}

/** @throws HttpError 400 for a grant of what is not there */
function recordOf(
  { expiresIn, expiresAt, grants, ...body }: z.output<typeof schemas.createBody>,
  { targets, now }: AdminDeps,
): StoredToken['record'] {
  const until = expiresIn === undefined ? expiresAt : new Date(now() + expiresIn * 1_000).toISOString();
  return {
    ...body,
    grants: grants.map((grant, i) => checkedGrant(grant, targets, `body.grants.${i}`)),
    createdAt: new Date(now()).toISOString(),
    ...(until === undefined ? {} : { expiresAt: until }),
  };
}

function checkedGrant(grant: Grant, targets: readonly GrantTarget[], place: string): Grant {
  const bad = (text: string) => new HttpError('invalid_request', `${place}.${text}`);
  const target = targets.find(({ service }) => service === grant.service);
  if (target === undefined) throw bad(`service: expected one of ${targets.map((t) => t.service).join(', ')}`);
  const unknown = grant.instances?.find((name) => !target.instances.includes(name));
  if (unknown !== undefined)
    throw bad(`instances: ${target.service} has no ${unknown}, only ${target.instances.join(', ')}`);
  if (target.permissions === undefined) {
    if (grant.permissions !== undefined) throw bad(`permissions: ${target.service} knows none`);
    return grant;
  }
  const checked = target.permissions.safeParse(grant.permissions ?? {});
  if (checked.success) return { ...grant, permissions: checked.data as Grant['permissions'] };
  const [issue] = checked.error.issues;
  throw bad(['permissions', ...(issue?.path ?? [])].join('.').concat(`: ${issue?.message}`));
}
