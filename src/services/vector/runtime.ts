import { bindRoutes } from '../../http/route.js';
import { PostgresKeptCalls } from '../../lib/kept-calls/postgres-kept-calls.js';
import { quoteIdentifier } from '../../lib/postgres/postgres.js';
import type { ServiceInstance, ServiceRuntime } from '../service.js';
import { changedNothing, formatError } from './errors.js';
import { VectorMetrics } from './metrics.js';
import { mountOf } from './mount.js';
import { PreparedIndex } from './prepared-index.js';
import { routes } from './routes.js';
import type { VectorSettings } from './settings.js';
import { SharedConnections } from './shared-connections.js';
import { openVectorDatabase } from './vector-database.js';

/** Connects to Postgres and prepares every index in the background. */
export function openVector(config: VectorSettings, runtime: ServiceRuntime): readonly ServiceInstance[] {
  const { log, lifecycle, metrics: registry } = runtime;
  const { url, schema } = config.database;
  if (url === null) throw new Error('vector.database.url is missing');
  const remake = () => {
    for (const index of indexes) index.remake();
  };
  const database = openVectorDatabase({ ...config.database, url }, remake, runtime);
  const connections = new SharedConnections(database, config.database);
  const metrics = new VectorMetrics(registry);
  const indexes = config.indexes.map(
    (settings) =>
      new PreparedIndex({
        ...{ database, connections, schema, settings, log, lifecycle },
        counters: metrics.watch(settings.name),
      }),
  );
  const calls = new PostgresKeptCalls(database, `${quoteIdentifier(schema)}.kept_calls`);
  return indexes.map((index) => {
    const { settings } = index;
    return {
      ...mountOf(settings),
      routes: bindRoutes(routes, { index }),
      formatError,
      bodyLimit: settings.bodyLimit,
      timeoutMs: settings.timeoutMs,
      backends: [{ name: 'postgres', check: () => index.check() }],
      ...(settings.idempotencyWindow === 0
        ? {}
        : {
            idempotency: { calls: () => calls, windowMs: settings.idempotencyWindow * 1_000, changedNothing },
          }),
    };
  });
}
