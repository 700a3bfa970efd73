import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { bindRoutes } from '../../http/route.js';
import { parseAddress } from '../../lib/address.js';
import type { ReleaseRegistry } from '../../lib/lifecycle.js';
import type { Logger } from '../../lib/logger.js';
import type { Mount, Service, ServiceInstance, ServiceRuntime } from '../service.js';
import { DailyQuota } from './api/daily-quota.js';
import { TOKEN_PARAMETER } from './api/path-arguments.js';
import { kvRoutes } from './api/routes.js';
import { databaseTokens, passwordOf } from './auth/database-tokens.js';
import { card, headerAlias, probe } from './card.js';
import { KvClient } from './database/client.js';
import { openReplicas } from './database/database-replicas.js';
import { KvMetrics } from './database/kv-metrics.js';
import { createEmulations } from './emulations/emulations.js';
import { formatError } from './errors.js';
import type { Endpoint } from './redis/connection.js';
import { type Denials, denialsOf } from './redis/denials.js';
import { endpointOf, sentinelsOf } from './redis/endpoint.js';
import { SentinelWatch } from './redis/sentinel-watch.js';
import { type Freshness, syncTokens } from './replicas/sync-token.js';
import { type DatabaseSettings, type KvSettings, kvSettings } from './settings/schemas.js';

/** Key-value service: the commands of Redis or Valkey over HTTP. */
export const kv: Service<KvSettings> = {
  name: 'kv',
  config: kvSettings,
  routes: kvRoutes,
  formatError,
  error: z.object({ error: z.string().describe('Class word (ERR, NOPERM, WRONGPASS ...) and explanation.') }),
  card,
  probe,
  headerAlias,
  exposedHeaders: ['upstash-sync-token', 'service-sync-token'],
  secrets: ({ databases }) => databases.flatMap((database, i) => secretsOf(database, `kv.databases[${i}]`)),
  addresses: ({ databases }) =>
    databases.map(({ url }, i) => ({ backend: 'redis', key: `kv.databases[${i}].url`, given: url !== null })),
  mounts: ({ databases }) => databases.map(mountOf),
  open: ({ databases }, runtime) => {
    const nextSyncToken = syncTokens(randomBytes(8).toString('hex'));
    const metrics = new KvMetrics(runtime.metrics);
    return databases.map((database) =>
      openDatabase(database, denialsOf(database, databases), runtime, metrics, nextSyncToken),
    );
  },
};

function secretsOf({ url, token, readOnlyToken }: DatabaseSettings, key: string) {
  // what a token is derived from must be as strong as the token
  const standard = token ?? passwordOf(url);
  return [
    {
      key: token === null && standard !== undefined ? `${key}.url` : `${key}.token`,
      value: standard ?? null,
    },
    ...(readOnlyToken === null ? [] : [{ key: `${key}.readOnlyToken`, value: readOnlyToken }]),
  ];
}

function openDatabase(
  database: DatabaseSettings,
  denials: Denials,
  runtime: ServiceRuntime,
  metrics: KvMetrics,
  nextSyncToken: (freshness?: Freshness) => string,
): ServiceInstance {
  const { name, bodyLimit, commandLimit, pipelineLimit, dailyRequestLimit, timeoutMs } = database;
  const { streamHeartbeatMs } = database;
  const { lifecycle, now } = runtime;
  const log = runtime.log.child({ database: name });
  const { rest } = databaseTokens(database);
  if (rest === undefined) throw new Error(`kv database ${name} has no token`);
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
    denials,
    tokens: rest,
    emulations: createEmulations(),
    observer: metrics.observer(name),
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
    routes: bindRoutes(kvRoutes, { client, quota, limits, streamHeartbeatMs, nextSyncToken, replicas }),
    formatError,
    bodyLimit,
    timeoutMs,
    backends: [{ name: 'redis', check: () => client.check() }],
  };
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

function mountOf(database: DatabaseSettings): Mount {
  const { name, path, port, queryToken } = database;
  const { standard, readOnly, rest } = databaseTokens(database);
  return {
    name,
    path,
    port,
    auth: {
      kind: 'bearer',
      credentials: [
        ...(standard === undefined
          ? []
          : [{ token: standard, principal: { name: 'standard', access: 'full' } as const }]),
        ...(readOnly === undefined
          ? []
          : [{ token: readOnly, principal: { name: 'read-only', access: 'read' } as const }]),
      ],
      ...(queryToken ? { queryKey: TOKEN_PARAMETER } : {}),
      ...(rest === undefined ? {} : { resolve: (token: string) => rest.principalOf(token) }),
      bareToken: true,
    },
  };
}
