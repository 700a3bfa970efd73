import { HttpError } from '../../http/errors.js';
import type { HealthState } from '../../http/monitoring/health.js';
import { jsonRoute, Reply, type Route } from '../../http/route.js';
import { CODE_LIFETIME_MS, type SignInCodes } from '../codes/sign-in-codes.js';
import type { SeriesView } from '../series/series-view.js';
import { type Access, OPERATIONS } from './access.js';
import * as schemas from './schemas.js';

/** What the console's own routes work with. */
export interface ConsoleDeps {
  readonly access: Access;
  readonly codes: SignInCodes;
  readonly health: () => Promise<readonly HealthState[]>;
  readonly series: (after: number | undefined) => Promise<SeriesView>;
  /** Everybody who comes here may see what the operations show, as with `/metrics`. */
  readonly isOpen: () => boolean;
}

const route = jsonRoute<ConsoleDeps>();
const UNKNOWN_CODE = 'The link was used already, is too old or was none of this gateway.';

const isOperations = ({ service }: { readonly service: string }) => service === OPERATIONS;

/** The services whose part of the overview credentials show. @throws HttpError 401 when they open nothing */
function visible(
  { access, isOpen }: ConsoleDeps,
  authorization: string | undefined,
): (service: string) => boolean {
  const unlocked = access.unlockedBy(authorization).map(({ service }) => service);
  if (unlocked.length === 0)
    throw new HttpError('unauthorized', undefined, {
      headers: { 'WWW-Authenticate': 'Bearer realm="portico"' },
    });
  return isOpen() || unlocked.includes(OPERATIONS) ? () => true : (service) => unlocked.includes(service);
}

/** What the console needs beside the services: credentials are checked by each of them, so these routes are open or look themselves. */
export const routes: readonly Route<ConsoleDeps>[] = [
  route({
    operationId: 'console.access',
    summary: 'What the credentials of this request open, and whether for reading only.',
    methods: ['GET'],
    isOpen: true,
    path: '/access',
    request: { headers: schemas.authorizationHeader },
    reply: schemas.accessReply,
    handle: async ({ headers }, _context, { access }) => ({
      unlocked: access.unlockedBy(headers.authorization),
    }),
  }),
  route({
    operationId: 'console.createCode',
    summary:
      'A code by which a link signs in once, within an hour, with these credentials; those that open nothing are left out.',
    methods: ['POST'],
    isOpen: true,
    path: '/codes',
    request: { body: schemas.codeBody },
    reply: schemas.codeReply,
    replyStatus: 201,
    errors: [400, 401, 429],
    handle: async ({ body }, _context, { access, codes }) => {
      const good = body.credentials.filter((each) => access.unlockedBy(each).length > 0);
      if (good.length === 0) throw new HttpError('unauthorized');
      const code = await codes.issue(good);
      if (code === undefined)
        throw new HttpError('too_many_requests', 'Too many links wait to be opened.', { retryAfter: 60 });
      return new Reply(201, { code, expiresInSeconds: CODE_LIFETIME_MS / 1_000 });
    },
  }),
  route({
    operationId: 'console.signIn',
    summary: 'The credentials that a code stands for; each code is good once.',
    methods: ['POST'],
    isOpen: true,
    path: '/sign-in',
    request: { body: schemas.signInBody },
    reply: schemas.signInReply,
    errors: [400, 401],
    handle: async ({ body }, _context, { codes }) => {
      const credentials = await codes.redeem(body.code);
      if (credentials === undefined) throw new HttpError('unauthorized', UNKNOWN_CODE);
      return { credentials: [...credentials] };
    },
  }),
  route({
    operationId: 'console.health',
    summary:
      'Whether each backend answers, of the services that the credentials open; of all with the metrics token.',
    methods: ['GET'],
    isOpen: true,
    path: '/health',
    request: { headers: schemas.authorizationHeader },
    reply: schemas.healthReply,
    errors: [401],
    handle: async ({ headers }, _context, deps) => {
      const isVisible = visible(deps, headers.authorization);
      const states = (await deps.health()).filter(({ service }) => isVisible(service));
      // reasons are for operators, as in /readyz
      const isOperator = deps.access.unlockedBy(headers.authorization).some(isOperations);
      return {
        services: states.map(({ reason, ...rest }) => (isOperator && reason ? { ...rest, reason } : rest)),
      };
    },
  }),
  route({
    operationId: 'console.series',
    summary:
      'Requests, errors and latency of the last 15 minutes in steps, all processes added up; of the services that the credentials open.',
    methods: ['GET'],
    isOpen: true,
    path: '/series',
    request: { headers: schemas.authorizationHeader, query: schemas.seriesQuery },
    reply: schemas.seriesReply,
    errors: [400, 401],
    handle: async ({ headers, query }, _context, deps) => {
      const isVisible = visible(deps, headers.authorization);
      const { services, ...view } = await deps.series(query.after);
      const own = Object.entries(services).filter(([service]) => isVisible(service));
      return { ...view, services: Object.fromEntries(own) } as never;
    },
  }),
];
