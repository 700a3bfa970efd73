import type { Service } from '../service.js';
import { card, probe } from './card.js';
import { documentation } from './documentation.js';
import { errorSchema, formatError } from './errors.js';
import { mountOf } from './mount.js';
import { routes } from './routes.js';
import { openVector } from './runtime.js';
import { type VectorSettings, vectorSettings } from './settings.js';

/** Vector indexes on Postgres with pgvector. */
export const vector: Service<VectorSettings> = {
  name: 'vector',
  config: vectorSettings,
  routes,
  documentation,
  formatError,
  error: errorSchema,
  card,
  probe,
  exposedHeaders: ['vector-plan'],
  secrets: ({ indexes }) =>
    indexes.flatMap(({ token, readOnlyToken }, i) => [
      { key: `vector.indexes[${i}].token`, value: token },
      ...(readOnlyToken === null
        ? []
        : [{ key: `vector.indexes[${i}].readOnlyToken`, value: readOnlyToken }]),
    ]),
  addresses: ({ database }) => [
    { backend: 'postgres', key: 'vector.database.url', given: database.url !== null },
  ],
  store: ({ database: { url } }) => ({ backend: 'postgres', url }),
  mounts: ({ indexes }) => indexes.map(mountOf),
  open: openVector,
  reset: async ({ call }) => {
    await call('DELETE', '/reset?all');
  },
};
