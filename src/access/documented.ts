import type { RouteDescription, ServiceDocumentation } from '../http/route.js';
import { adminRoutes } from './admin-routes.js';
import { errorSchema } from './schemas.js';
import { ADMIN_PATH } from './settings.js';

const token = {
  id: 'tk_1f0c5d9a2b3e4f5061',
  name: 'reports',
  grants: [{ service: 'kv', access: 'read' }],
  createdAt: '2026-01-31T12:00:00.000Z',
  rateLimit: { requests: 100, seconds: 10 },
};

const entry = {
  at: '2026-01-31T12:00:00.000Z',
  kind: 'destructive',
  operation: 'vector.reset',
  who: 'tk_1f0c5d9a2b3e4f5061',
  from: '203.0.113.7',
  target: { namespace: 'books' },
  status: 200,
  requestId: 'lq3-1',
};

const documentation: ServiceDocumentation = {
  about: 'Tokens made and ended while the gateway runs, and the audit log; with `admin.token`.',
  names: { id: token.id },
  examples: {
    'admin.createToken': {
      body: { name: token.name, grants: token.grants, expiresIn: 86_400, rateLimit: token.rateLimit },
      reply: { ...token, expiresAt: '2026-02-01T12:00:00.000Z', token: 'ptk_shown-this-once' },
    },
    'admin.listTokens': { query: { limit: 100 }, reply: { tokens: [token] } },
    'admin.token': { reply: token },
    'admin.revokeToken': { reply: { id: token.id, revoked: true } },
    'admin.audit': { query: { limit: 100 }, reply: { entries: [entry] } },
  },
};

/** The administrator's routes as the OpenAPI document shows them. */
export const adminDocumentation = {
  name: 'admin',
  basePath: ADMIN_PATH,
  auth: 'bearer' as const,
  error: errorSchema,
  routes: adminRoutes as readonly RouteDescription[],
  documentation,
};
