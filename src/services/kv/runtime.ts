import { randomBytes } from 'node:crypto';
import { bindRoutes } from '../../http/route.js';
import { parseAddress } from '../../lib/address.js';
import { RedisKeptCalls } from '../../lib/kept-calls/redis-kept-calls.js';
import type { ReleaseRegistry } from '../../lib/lifecycle.js';
import type { Logger } from '../../lib/logger.js';
import type { ServiceInstance, ServiceRuntime } from '../service.js';
import { DailyQuota } from './api/daily-quota.js';
import { databaseTokens } from './auth/database-tokens.js';
import { KvClient } from './database/client.js';
import { openReplicas } from './database/database-replicas.js';
import { createEmulations } from './emulations/emulations.js';
import { changedNothing, formatError } from './errors.js';
import { KvMetrics } from './metrics.js';
import { mountOf } from './mount.js';
import type { Endpoint } from './redis/connection.js';
import { type Denials, denialsOf } from './redis/denials.js';
import { endpointOf, sentinelsOf } from './redis/endpoint.js';
import { SentinelWatch } from './redis/sentinel-watch.js';
import { type Freshness, syncTokens } from './replicas/sync-token.js';
import { RespError, type RespValue } from './resp/resp-decoder.js';
import { routes } from './routes.js';
import type { DatabaseSettings, KvSettings } from './settings.js';

/** Connects every database in the background. */
export function openKv(
  { databases }: KvSettings,
  runtime: ServiceRuntime<KvSettings>,
): readonly ServiceInstance[] {
  const nextSyncToken = syncTokens(randomBytes(8).toString('hex'));
  const metrics = new KvMetrics(runtime.metrics);
  return databases.map((database) =>
    openDatabase(database, denialsOf(database, databases), runtime, metrics, nextSyncToken),
  );
}

function openDatabase(
  database: DatabaseSettings,
  denials: Denials,
  runtime: ServiceRuntime<KvSettings>,
  metrics: KvMetrics,
  nextSyncToken: (freshness?: Freshness) => string,
): ServiceInstance {
  const { name, bodyLimit, commandLimit, pipelineLimit, dailyRequestLimit, timeoutMs } = database;
  const { streamHeartbeatMs } = database;
  const { lifecycle, now } = runtime;
  const log = runtime.log.child({ database: name });
  const { rest } = databaseTokens(database);
  if (rest === undefined) throw new Error(`kv database ${name} has no token`);
  runtime.onReload(({ databases }) => {
    const changed = databases.find((other) => other.name === name);
    const { rest: next } = changed === undefined ? {} : databaseTokens(changed);
    if (next !== undefined) rest.become(next);
  });
  const endpoint = primaryOf(database, log, lifecycle);
  const client = new KvClient({
    endpoint,
    cluster: database.cluster ? [endpoint, ...database.nodes.map(parseAddress)] : undefined,
    connectTimeoutMs: database.connectTimeoutMs,
    timeoutMs,
    replyLimit: database.replyLimit,
    exclusiveLimit: database.exclusiveConnections,
    longestBlockMs: database.longestBlockMs,
    aclUserLimit: database.aclUsers,
    streamLimit: database.streams,
    killScripts: database.killScripts,
    denials,
    tokens: rest,
    emulations: createEmulations(),
    observer: metrics.observer(name),
    tracer: runtime.tracer,
    log,
    lifecycle,
  });
  metrics.watch(name, client);
  const quota = new DailyQuota({ limit: dailyRequestLimit, send: client.send, now });
  const replicas = openReplicas(database, client, log, lifecycle);
  if (replicas !== undefined) metrics.watchReads(name, replicas.counts);
  const limits = { command: commandLimit, pipeline: pipelineLimit };
  return {
    ...mountOf(database),
    routes: bindRoutes(routes, { client, quota, limits, streamHeartbeatMs, nextSyncToken, replicas }),
    formatError,
    bodyLimit,
    timeoutMs,
    backends: [{ name: 'redis', check: () => client.check() }],
    ...idempotencyOf(database, client),
  };
}

/** What Portico itself keeps in a database begins so; see also `api/daily-quota.ts`. */
const KEPT_PREFIX = 'portico:idempotency:';

function idempotencyOf({ idempotencyWindow }: DatabaseSettings, client: KvClient) {
  if (idempotencyWindow === 0) return {};
  const calls = new RedisKeptCalls(KEPT_PREFIX, (command) =>
    client.send([command as string[]], ([reply]) => textOf(reply)),
  );
  return { idempotency: { calls: () => calls, windowMs: idempotencyWindow * 1_000, changedNothing } };
}

/** @throws RespError what Redis refuses */
function textOf(reply: RespValue | undefined): string | null {
  if (reply instanceof RespError) throw reply;
  return reply === null || reply === undefined ? null : String(reply);
}

/** The address of the primary, however it is found. */
function primaryOf(database: DatabaseSettings, log: Logger, lifecycle: ReleaseRegistry): Endpoint {
  const { name, url, connectTimeoutMs } = database;
  if (url === null) throw new Error(`kv database ${name} has no address`);
  const settings = { ...database, url };
  const endpoint = endpointOf(settings);
  const sentinels = sentinelsOf(settings);
  if (sentinels === undefined) return endpoint;
  const watch = new SentinelWatch({ sentinels, name: endpoint.host, connectTimeoutMs, log, lifecycle });
  return { ...endpoint, sentinels: watch.endpoints };
}
