import { bindRoutes } from '../../http/route.js';
import { PostgresKeptCalls } from '../../lib/kept-calls/postgres-kept-calls.js';
import { quoteIdentifier } from '../../lib/postgres/postgres.js';
import type { Mount, ServiceInstance, ServiceRuntime } from '../service.js';
import { adminRoutes } from './api/admin-routes.js';
import { managedRoutes } from './api/managed-routes.js';
import { changedNothing, formatError } from './errors.js';
import { ManagedIndexes } from './managed/managed-indexes.js';
import { VectorMetrics } from './metrics.js';
import { managedMount, mountOf } from './mount.js';
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
    managed?.remake();
  };
  const database = openVectorDatabase({ ...config.database, url }, remake, runtime);
  const connections = new SharedConnections(database, config.database);
  const metrics = new VectorMetrics(registry);
  const common = { database, connections, schema, log };
  const indexes = config.indexes.map(
    (settings) =>
      new PreparedIndex({ ...common, settings, lifecycle, counters: metrics.watch(settings.name) }),
  );
  const calls = new PostgresKeptCalls(database, `${quoteIdentifier(schema)}.kept_calls`);
  const { adminToken } = config;
  const managed =
    adminToken === null
      ? undefined
      : new ManagedIndexes({
          ...{ database, schema, adminToken, log, lifecycle },
          managed: config.managed,
          declared: indexes,
          open: (settings, ownLifecycle) =>
            new PreparedIndex({
              ...{ ...common, settings, lifecycle: ownLifecycle, isManaged: true },
              counters: metrics.watch(settings.name),
            }),
          forget: (name) => metrics.forget(name),
        });
  return [
    ...indexes.map((index) => instanceOf(index, calls)),
    ...(adminToken === null || managed === undefined
      ? []
      : [managedInstance(managedMount(adminToken, config.managed), managed, config.managed, calls)]),
  ];
}

function instanceOf(index: PreparedIndex, calls: PostgresKeptCalls): ServiceInstance {
  const { settings } = index;
  return {
    ...mountOf(settings),
    routes: bindRoutes(routes, { index }),
    formatError,
    bodyLimit: settings.bodyLimit,
    timeoutMs: settings.timeoutMs,
    backends: [{ name: 'postgres', check: () => index.check() }],
    ...keyedCalls(settings, calls),
  };
}

function managedInstance(
  mount: Mount,
  indexes: ManagedIndexes,
  settings: VectorSettings['managed'],
  calls: PostgresKeptCalls,
): ServiceInstance {
  const { bodyLimit, timeoutMs } = settings;
  return {
    ...mount,
    routes: bindRoutes([...adminRoutes, ...managedRoutes(routes)], { indexes }),
    ...{ formatError, bodyLimit, timeoutMs },
    backends: [{ name: 'postgres', check: () => indexes.check() }],
    ...keyedCalls(settings, calls),
  };
}

function keyedCalls(
  { idempotencyWindow }: { readonly idempotencyWindow: number },
  calls: PostgresKeptCalls,
): Pick<ServiceInstance, 'idempotency'> {
  if (idempotencyWindow === 0) return {};
  return { idempotency: { calls: () => calls, windowMs: idempotencyWindow * 1_000, changedNothing } };
}
