import type { Service } from '../service.js';
import { adminRoutes } from './api/admin-routes.js';
import { card, probe } from './card.js';
import { documentation } from './documentation.js';
import { errorSchema, formatError } from './errors.js';
import { managedMount, mountOf } from './mount.js';
import { routes } from './routes.js';
import { openVector } from './runtime.js';
import { type VectorSettings, vectorSettings } from './settings.js';

/** Vector indexes on Postgres with pgvector. */
export const vector: Service<VectorSettings> = {
  name: 'vector',
  config: vectorSettings,
  routes: [...routes, ...adminRoutes],
  documentation,
  formatError,
  error: errorSchema,
  card,
  probe,
  exposedHeaders: ['vector-plan', 'vector-warning'],
  secrets: ({ indexes, adminToken }) => [
    ...indexes.flatMap(({ token, readOnlyToken }, i) => [
      { key: `vector.indexes[${i}].token`, value: token },
      ...(readOnlyToken === null
        ? []
        : [{ key: `vector.indexes[${i}].readOnlyToken`, value: readOnlyToken }]),
    ]),
    ...(adminToken === null ? [] : [{ key: 'vector.adminToken', value: adminToken }]),
  ],
  addresses: ({ database }) => [
    { backend: 'postgres', key: 'vector.database.url', given: database.url !== null },
  ],
  store: ({ database: { url } }) => ({ backend: 'postgres', url }),
  mounts: ({ indexes, adminToken, managed }) => [
    ...indexes.map(mountOf),
    ...(adminToken === null ? [] : [managedMount(adminToken, managed)]),
  ],
  open: openVector,
  reset: async ({ call }) => {
    await call('DELETE', '/reset?all');
  },
};
