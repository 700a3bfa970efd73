import { givenTlsFiles } from '../../lib/tls.js';
import type { Service } from '../service.js';
import { issuedPermissions } from './api/admitted-row.js';
import { passwordOf } from './auth/database-tokens.js';
import { card, headerAlias, probe } from './card.js';
import { documentation } from './documentation.js';
import { errorSchema, formatError } from './errors.js';
import { mountOf } from './mount.js';
import { routes } from './routes.js';
import { openKv } from './runtime.js';
import { type DatabaseSettings, type KvSettings, kvSettings } from './settings.js';

/** Key-value service: the commands of Redis or Valkey over HTTP. */
export const kv: Service<KvSettings> = {
  name: 'kv',
  config: kvSettings,
  routes,
  documentation,
  formatError,
  error: errorSchema,
  card,
  probe,
  headerAlias,
  exposedHeaders: ['upstash-sync-token', 'service-sync-token'],
  secrets: ({ databases }) => databases.flatMap((database, i) => secretsOf(database, `kv.databases[${i}]`)),
  addresses: ({ databases }) =>
    databases.map(({ url }, i) => ({ backend: 'redis', key: `kv.databases[${i}].url`, given: url !== null })),
  store: ({ databases }) => {
    const plain = databases.find(
      ({ url, cluster, sentinels, tls }) =>
        isPlain(url) && !cluster && sentinels.length === 0 && givenTlsFiles(tls).length === 0,
    );
    return plain === undefined ? undefined : { backend: 'redis', url: plain.url };
  },
  permissions: issuedPermissions,
  mounts: ({ databases }) => databases.map(mountOf),
  open: openKv,
  reset: async ({ call }) => {
    await call('POST', '', ['FLUSHDB']);
  },
};

/** Not a socket's: what the gateway itself keeps is reached over TCP. */
const isPlain = (url: string | null) => url === null || !url.startsWith('unix:');

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
