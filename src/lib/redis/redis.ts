import { Redis } from 'ioredis';
import type { ReleaseRegistry } from '../lifecycle.js';
import type { Logger } from '../logger.js';

export type { Redis } from 'ioredis';

export interface RedisStoreOptions {
  /** `redis://user:password@host:port/database`, `rediss://` for TLS. */
  readonly url: string;
  /** How long making a connection may take, in ms. */
  readonly connectTimeoutMs: number;
  /** How long the answer to a command may take, in ms. */
  readonly commandTimeoutMs: number;
  /** Connects when it is asked to. */
  readonly isLazy?: boolean;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
}

/** Longest pause between two attempts to connect, in ms. */
const LONGEST_PAUSE_MS = 500;

/**
 * One connection for what the gateway itself keeps in Redis: a few commands a second. Connects in the background; while there is
 * no connection, commands fail at once.
 */
export function openRedis({
  url,
  connectTimeoutMs,
  commandTimeoutMs,
  isLazy = false,
  log,
  lifecycle,
}: RedisStoreOptions): Redis {
  const redis = new Redis({
    ...placeOf(new URL(url)),
    connectTimeout: connectTimeoutMs,
    commandTimeout: commandTimeoutMs,
    connectionName: 'portico access',
    lazyConnect: isLazy,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempts) => Math.min(attempts * 50, LONGEST_PAUSE_MS),
  });
  let failure: string | undefined;
  redis.on('error', (err: Error) => {
    // one line for each kind of failure, not one for each of the attempts that meet it
    if (err.message !== failure) log.warn({ err }, 'no connection to Redis');
    failure = err.message;
  });
  redis.on('ready', () => {
    failure = undefined;
  });
  lifecycle.onStop('access redis', () => redis.disconnect());
  return redis;
}

/** ioredis' own reading of URLs would let query parameters change any option. */
function placeOf({ protocol, hostname, port, username, password, pathname }: URL) {
  return {
    host: decodeURIComponent(hostname.replace(/^\[(.*)\]$/, '$1')) || '127.0.0.1',
    port: port === '' ? 6379 : Number(port),
    db: Number(pathname.slice(1)),
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss:' ? { tls: {} } : {}),
  };
}
