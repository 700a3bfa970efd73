import { z } from 'zod';

const YEARS_10_S = 10 * 365 * 86_400;

const grant = z.strictObject({
  service: z.string().max(64).describe('kv, vector, broker or queue.'),
  instances: z
    .array(z.string().max(64))
    .min(1)
    .max(1_000)
    .optional()
    .describe('Names of databases, indexes or clusters; without it, all of the service.'),
  access: z.enum(['full', 'read']).default('full').describe('read: what changes data is refused (403).'),
  permissions: z
    .record(z.string(), z.unknown())
    .optional()
    .describe(
      'What the service can restrict further. broker: topicPattern, permission and topicAdmin, as those of a user.',
    ),
});

const rateLimit = z.strictObject({
  requests: z.int().min(1).max(1_000_000_000),
  seconds: z.int().min(1).max(86_400),
});

const quota = z.strictObject({
  requests: z.int().min(1).max(1_000_000_000),
  per: z.enum(['day', 'month']).describe('By UTC.'),
});

export const createBody = z
  .strictObject({
    name: z.string().min(1).max(200).describe('For people.'),
    grants: z.array(grant).min(1).max(50),
    expiresAt: z.iso.datetime({ offset: true }).optional(),
    expiresIn: z.int().min(1).max(YEARS_10_S).optional().describe('Seconds, in place of expiresAt.'),
    rateLimit: rateLimit.optional(),
    quota: quota.optional(),
  })
  .refine(({ expiresAt, expiresIn }) => expiresAt === undefined || expiresIn === undefined, {
    error: 'expected expiresAt or expiresIn, not both',
    path: ['expiresIn'],
  });

export const tokenReply = z.object({
  id: z.string().describe('Names it in the log, and is the user name where the service asks for one.'),
  name: z.string(),
  grants: z.array(grant),
  createdAt: z.string(),
  expiresAt: z.string().optional(),
  rateLimit: rateLimit.optional(),
  quota: quota.optional(),
});

export const createdReply = tokenReply.extend({ token: z.string().describe('Shown this once.') });

export const idParams = z.object({ id: z.string().max(100) });

const pageSize = (most: number) => z.coerce.number().int().min(1).max(most).default(Math.min(100, most));

export const listQuery = z.object({
  cursor: z.string().max(100).optional().describe('Of the page before.'),
  limit: pageSize(1_000),
});

export const tokensReply = z.object({ tokens: z.array(tokenReply), cursor: z.string().optional() });

export const auditQuery = z.object({
  cursor: z
    .string()
    .regex(/^\d{1,18}(-\d{1,18})?$/, 'expected the cursor of the page before')
    .optional()
    .describe('Of the page before.'),
  limit: pageSize(1_000),
});

export const auditReply = z.object({
  entries: z.array(
    z.object({
      at: z.string(),
      kind: z.enum(['destructive', 'administrative']),
      operation: z.string(),
      who: z.string(),
      from: z.string().nullable(),
      target: z.record(z.string(), z.string()),
      status: z.int(),
      requestId: z.string(),
    }),
  ),
  cursor: z.string().optional(),
});

export const revokedReply = z.object({ id: z.string(), revoked: z.literal(true) });

export const errorSchema = z.object({ error: z.string(), status: z.int() });
