import { bindRoutes } from '../../http/route.js';
import type { Mount, Service, ServiceInstance, ServiceRuntime } from '../service.js';
import { card, probe } from './card.js';
import { openVectorDatabase } from './client.js';
import { formatError } from './errors.js';
import { PreparedIndex } from './prepared-index.js';
import { routes } from './routes/routes.js';
import { errorReply } from './schemas/replies.js';
import { type IndexSettings, type VectorSettings, vectorSettings } from './settings.js';
import { SharedConnections } from './shared-connections.js';

/** Vector indexes on Postgres with pgvector. */
export const vector: Service<VectorSettings> = {
  name: 'vector',
  config: vectorSettings,
  routes,
  formatError,
  error: errorReply,
  card,
  probe,
  exposedHeaders: [],
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
  mounts: ({ indexes }) => indexes.map(mountOf),
  open,
};

function mountOf({ name, path, port, token, readOnlyToken }: IndexSettings): Mount {
  const credentials = [
    ...(token === null ? [] : [{ token, principal: { name: 'token', access: 'full' as const } }]),
    ...(readOnlyToken === null
      ? []
      : [{ token: readOnlyToken, principal: { name: 'read-only token', access: 'read' as const } }]),
  ];
  return { name, path, port, auth: { kind: 'bearer', credentials } };
}

function open(config: VectorSettings, { log, lifecycle }: ServiceRuntime): readonly ServiceInstance[] {
  const { url, schema } = config.database;
  if (url === null) throw new Error('vector.database.url is missing');
  const remake = () => {
    for (const index of indexes) index.remake();
  };
  const database = openVectorDatabase({ ...config.database, url }, remake, log, lifecycle);
  const connections = new SharedConnections(database, config.database);
  const indexes = config.indexes.map(
    (settings) => new PreparedIndex({ database, connections, schema, settings, log, lifecycle }),
  );
  return indexes.map((index) => {
    const { settings } = index;
    return {
      ...mountOf(settings),
      routes: bindRoutes(routes, { index }),
      formatError,
      bodyLimit: settings.bodyLimit,
      timeoutMs: settings.timeoutMs,
      backends: [{ name: 'postgres', check: () => index.check() }],
    };
  });
}
