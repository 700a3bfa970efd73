import { parseAddress } from '../../../lib/address.js';
import { type TlsFiles, tlsOptions } from '../../../lib/tls.js';
import type { Endpoint, SentinelEndpoints } from './connection.js';

/** Parts of a database's settings that say where its servers are. */
export interface EndpointSettings {
  readonly url: string;
  readonly tls: TlsFiles;
  readonly sentinels: readonly string[];
  readonly sentinelUsername: string | null;
  readonly sentinelPassword: string | null;
  readonly sentinelTls: boolean;
}

/**
 * A URL as an endpoint: `redis://user:password@host:port/db`, `rediss://` for TLS, `unix://user:password@/path?db=1`.
 * @throws Error naming the file when a certificate cannot be read
 */
export function endpointOf({ url: text, tls }: Pick<EndpointSettings, 'url' | 'tls'>): Endpoint {
  const url = new URL(text);
  const host = decodeURIComponent(url.hostname.replace(/^\[(.*)\]$/, '$1'));
  const isSocket = url.protocol === 'unix:';
  return {
    host: host === '' ? '127.0.0.1' : host,
    port: url.port === '' ? 6379 : Number(url.port),
    ...(isSocket ? { path: decodeURIComponent(url.pathname) } : {}),
    ...(url.username === '' ? {} : { username: decodeURIComponent(url.username) }),
    ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
    db: Number((isSocket ? url.searchParams.get('db') : url.pathname.slice(1)) ?? 0),
    ...(url.protocol === 'rediss:' ? { tls: tlsOptions(tls) } : {}),
  };
}

/** Where the Sentinels are; `undefined` for a database without. @throws as `endpointOf` */
export function sentinelsOf(settings: EndpointSettings): SentinelEndpoints | undefined {
  const { sentinels, sentinelUsername, sentinelPassword, sentinelTls, tls } = settings;
  if (sentinels.length === 0) return undefined;
  return {
    nodes: sentinels.map(parseAddress),
    role: 'master',
    ...(sentinelUsername === null ? {} : { username: sentinelUsername }),
    ...(sentinelPassword === null ? {} : { password: sentinelPassword }),
    ...(sentinelTls ? { tls: tlsOptions(tls) } : {}),
  };
}
