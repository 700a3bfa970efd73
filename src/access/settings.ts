import { z } from 'zod';
import { milliseconds, secret, serverUrl } from '../lib/settings/settings.js';

/** Where the administrator's routes are. */
export const ADMIN_PATH = '/admin';

/** The section `admin` of the configuration. */
export const adminSettings = z.strictObject({
  token: secret('PORTICO_ADMIN_TOKEN')
    .nullable()
    .default(null)
    .describe(
      "The administrator's bearer token for /admin/v1: tokens made at run time, and the audit log (docs/tokens.md). null: there is no /admin. `npm start` makes one.",
    ),
  storeUrl: serverUrl(['postgres:', 'postgresql:', 'redis:', 'rediss:'])
    .nullable()
    .default(null)
    .meta({ secret: true, env: 'PORTICO_ADMIN_STORE_URL' })
    .describe(
      "Postgres or Redis that keeps the tokens' hashes and the audit log. null: the Postgres of vector or queue, else the Redis of the first database of kv that is a single server.",
    ),
  schema: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]{0,62}$/, 'expected a plain name: letters, digits and "_", at most 63')
    .default('portico_access')
    .describe('Postgres schema for it; made when missing.'),
  prefix: z
    .string()
    .regex(/^[\w:.-]{1,100}$/, 'expected 1 to 100 letters, digits, ":", "_", "." or "-"')
    .default('portico:access:')
    .describe('What the keys for it begin with, in Redis.'),
  graceMs: milliseconds(30_000, 2_000).describe(
    'So long the tokens known last stay valid while their store does not answer; then they are answered 503. A token that is not known gets 503 meanwhile.',
  ),
  maxTokens: z
    .int()
    .min(1)
    .max(10_000)
    .default(1_000)
    .describe('Most tokens at a time; every process holds all of them.'),
  auditRetention: z
    .int()
    .min(60)
    .max(10 * 365 * 86_400)
    .default(30 * 86_400)
    .describe('Seconds for which entries of the audit log are listed.'),
});

export type AdminSettings = z.output<typeof adminSettings>;
