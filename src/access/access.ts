import type { ServiceInstance } from '../http/instance.js';
import { type AuthScheme, bindRoutes, type ErrorFormat } from '../http/route.js';
import type { ReleaseRegistry } from '../lib/lifecycle.js';
import type { Logger } from '../lib/logger.js';
import type { MetricRegistry } from '../lib/metric-source.js';
import type { AccessStore } from './access-store.js';
import { adminRoutes, type GrantTarget } from './admin-routes.js';
import { AuditLog } from './audit-log.js';
import { IssuedTokens } from './issued-tokens.js';
import { PostgresStore } from './postgres-store.js';
import { RedisStore } from './redis-store.js';
import { ADMIN_PATH, type AdminSettings } from './settings.js';

const TIMEOUT_MS = 10_000;
const BODY_LIMIT = 256 * 1024;
const PURGE_MS = 600_000;
/** So long a token that has expired is still shown. */
const LISTED_AFTER_EXPIRY_MS = 86_400_000;

export interface AccessOptions {
  readonly settings: AdminSettings & { readonly token: string };
  readonly storeUrl: string;
  readonly targets: readonly GrantTarget[];
  readonly formatError: ErrorFormat;
  /** Told the ids of tokens that are no longer valid. */
  readonly onGone: (ids: ReadonlySet<string>) => void;
  /** ms since 1970. */
  readonly now: () => number;
  readonly metrics: MetricRegistry;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
}

/** Tokens that are made while the gateway runs, and the log of what was done. */
export interface AccessControl {
  /** Serves the administrator's routes. */
  readonly instance: ServiceInstance;
  readonly audit: AuditLog;
  /** The same scheme, which takes the tokens made for this instance as well. */
  withIssued(auth: AuthScheme, service: string, instance: string): AuthScheme;
}

export function openAccess(options: AccessOptions): AccessControl {
  const { settings, targets, now, onGone, log, lifecycle } = options;
  const store = openStore(options);
  const audit = new AuditLog(store, log, lifecycle);
  const tokens = new IssuedTokens({ store, graceMs: settings.graceMs, now, onGone, log, lifecycle });
  purgeNowAndThen(store, settings.auditRetention, log, lifecycle);
  addMetrics(options.metrics, tokens);
  const deps = { store, tokens, targets, maxTokens: settings.maxTokens, now };
  return {
    instance: {
      name: 'default',
      path: ADMIN_PATH,
      port: null,
      auth: {
        kind: 'bearer',
        credentials: [
          { token: settings.token, principal: { name: 'administrator', access: 'full' as const } },
        ],
      },
      routes: bindRoutes(adminRoutes, deps),
      formatError: options.formatError,
      bodyLimit: BODY_LIMIT,
      timeoutMs: TIMEOUT_MS,
      backends: [],
    },
    audit,
    withIssued: (auth, service, instance) => ({ ...auth, issued: tokens.lookupFor(service, instance) }),
  };
}

function openStore({ settings, storeUrl: url, log, lifecycle }: AccessOptions): AccessStore {
  const { schema, prefix, token: adminToken } = settings;
  return /^rediss?:/.test(url)
    ? new RedisStore({ url, prefix, adminToken, log, lifecycle })
    : new PostgresStore({ url, schema, log, lifecycle });
}

function purgeNowAndThen(
  store: AccessStore,
  retention: number,
  log: Logger,
  lifecycle: ReleaseRegistry,
): void {
  const timer = setInterval(() => {
    purge(store, retention).catch((err: unknown) => log.warn({ err }, 'what is old cannot be removed'));
  }, PURGE_MS).unref();
  lifecycle.onStop('access purge', () => clearInterval(timer));
}

async function purge(store: AccessStore, retention: number): Promise<void> {
  await store.purge(retention);
  const { tokens } = await store.load();
  const until = Date.now() - LISTED_AFTER_EXPIRY_MS;
  for (const { id, record } of tokens)
    if (record.expiresAt !== undefined && Date.parse(record.expiresAt) < until) await store.remove(id);
}

function addMetrics(metrics: MetricRegistry, tokens: IssuedTokens): void {
  metrics.add({
    name: 'portico_access_store_failures_total',
    help: 'Looks at the store of tokens made at run time that it did not answer; there are three a second.',
    type: 'counter',
    collect: () => [{ labels: {}, value: tokens.failures }],
  });
}
