import { keepTrying, type Progress } from '../lib/keep-trying.js';
import type { KeptCall, KeptCalls } from '../lib/kept-calls/kept-calls.js';
import { PostgresKeptCalls } from '../lib/kept-calls/postgres-kept-calls.js';
import { RedisKeptCalls } from '../lib/kept-calls/redis-kept-calls.js';
import type { ReleaseRegistry } from '../lib/lifecycle.js';
import type { Logger } from '../lib/logger.js';
import { migrate, openDatabase, quoteIdentifier } from '../lib/postgres/postgres.js';
import { openRedis } from '../lib/redis/redis.js';
import { endedWithin } from '../lib/within.js';
import { accessMigrations } from './migrations.js';
import type { AdminSettings } from './settings.js';

const CONNECT_MS = 1_500;
const ANSWER_MS = 1_300;
const POOL_SIZE = 4;

export interface KeptCallsOptions {
  readonly url: string;
  readonly settings: Pick<AdminSettings, 'schema' | 'prefix'>;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
}

/**
 * Calls with a key of services whose backend cannot keep them, where tokens would be kept. Nothing connects before the first one;
 * what is to be released at the end is registered now, behind which requests end.
 */
export function openKeptCalls(options: KeptCallsOptions): KeptCalls {
  return /^rediss?:/.test(options.url) ? inRedis(options) : inPostgres(options);
}

function inRedis({ url, settings, log, lifecycle }: KeptCallsOptions): KeptCalls {
  const limits = { connectTimeoutMs: CONNECT_MS, commandTimeoutMs: ANSWER_MS };
  const redis = openRedis({ url, ...limits, isLazy: true, log, lifecycle });
  let connected: Promise<void> | undefined;
  return new RedisKeptCalls(`${settings.prefix}call:`, async ([name = '', ...words]) => {
    connected ??= redis.connect().catch(() => undefined);
    await connected;
    return redis.call(name, ...words);
  });
}

function inPostgres({ url, settings: { schema }, log, lifecycle }: KeptCallsOptions): KeptCalls {
  let migrated: Progress | undefined;
  const database = openDatabase({
    url,
    poolSize: POOL_SIZE,
    statementTimeoutMs: ANSWER_MS,
    connectTimeoutMs: CONNECT_MS,
    applicationName: 'portico access',
    onMissingTable: () => migrated?.redo(),
    log,
    lifecycle,
  });
  const calls = new PostgresKeptCalls(database, `${quoteIdentifier(schema)}.kept_calls`);
  const prepare = () => migrate(database, schema, accessMigrations(schema));
  return {
    claim: async (id: string, call: KeptCall, windowMs: number) => {
      migrated ??= keepTrying(prepare, { name: 'access schema', log, lifecycle });
      if (!migrated.done) await endedWithin(CONNECT_MS, migrated.success);
      return calls.claim(id, call, windowMs);
    },
    finish: (id, call) => calls.finish(id, call),
    release: (id) => calls.release(id),
  };
}
