import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { type AuthScheme, bindRoutes } from '../../http/route.js';
import type { Mount, Service, ServiceInstance, ServiceRuntime } from '../service.js';
import { KvClient } from './client.js';
import { formatError } from './errors.js';
import { TOKEN_PARAMETER } from './path-arguments.js';
import { kvRoutes } from './routes.js';
import { type DatabaseSettings, type KvSettings, kvSettings } from './schemas.js';
import { syncTokens } from './sync-token.js';

/** Key-value service: the commands of Redis or Valkey over HTTP. */
export const kv: Service<KvSettings> = {
  name: 'kv',
  config: kvSettings,
  routes: kvRoutes,
  formatError,
  error: z.object({ error: z.string().describe('Class word (ERR, NOPERM, WRONGPASS ...) and explanation.') }),
  secrets: ({ databases }) =>
    databases.flatMap(({ token, readOnlyToken }, i) => [
      { key: `kv.databases[${i}].token`, value: token },
      // there need not be a read-only token; where there is one it must be strong too
      ...(readOnlyToken === null ? [] : [{ key: `kv.databases[${i}].readOnlyToken`, value: readOnlyToken }]),
    ]),
  backends: ({ databases }) => [{ name: 'redis', given: databases.every(({ url }) => url !== null) }],
  mounts: ({ databases }) => databases.map(mountOf),
  open: ({ databases }, runtime) => {
    const nextSyncToken = syncTokens(randomBytes(8).toString('hex'));
    return databases.map((database) => openDatabase(database, runtime, nextSyncToken));
  },
};

function openDatabase(
  database: DatabaseSettings,
  { log, lifecycle }: ServiceRuntime,
  nextSyncToken: () => string,
): ServiceInstance {
  const { name, url, bodyLimit, replyLimit, timeoutMs, connectTimeoutMs } = database;
  if (url === null) throw new Error(`kv database ${name} has no address`);
  const client = new KvClient({
    url,
    connectTimeoutMs,
    stallMs: timeoutMs,
    replyLimit,
    log: log.child({ database: name }),
    lifecycle,
  });
  return {
    ...mountOf(database),
    routes: bindRoutes(kvRoutes, { client, nextSyncToken }),
    formatError,
    bodyLimit,
    timeoutMs,
    backends: [{ name: 'redis', check: () => client.check() }],
  };
}

function mountOf({ name, path, port, token, readOnlyToken }: DatabaseSettings): Mount {
  const credentials: Extract<AuthScheme, { kind: 'bearer' }>['credentials'] = [
    ...(token === null ? [] : [{ token, principal: { name: 'standard', access: 'full' } as const }]),
    ...(readOnlyToken === null
      ? []
      : [{ token: readOnlyToken, principal: { name: 'read-only', access: 'read' } as const }]),
  ];
  return {
    name,
    path,
    port,
    auth: { kind: 'bearer', credentials, queryKey: TOKEN_PARAMETER, bareToken: true },
  };
}
