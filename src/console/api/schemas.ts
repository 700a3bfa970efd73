import { z } from 'zod';

/** As it stands in the header `Authorization`. */
const credential = z
  .string()
  .regex(/^(Bearer|Basic) [\x21-\x7e]{1,8192}$/, 'expected a value of the header Authorization');

export const authorizationHeader = z.object({ authorization: z.string().max(10_000).optional() });

export const codeBody = z.strictObject({
  credentials: z
    .array(credential)
    .min(1)
    .max(20)
    .describe('Values of the header Authorization that the link signs in with.'),
});
export const codeReply = z.object({
  code: z.string().describe('For the fragment of the link: console/#sign-in=CODE.'),
  expiresInSeconds: z.int(),
});

export const signInBody = z.strictObject({ code: z.string().min(1).max(200) });
export const signInReply = z.object({ credentials: z.array(z.string()) });

const served = z.object({
  service: z.string(),
  name: z.string(),
  path: z.string().describe('Below the gateway, such as /kv.'),
});
export const accessReply = z.object({
  unlocked: z.array(
    served.extend({
      access: z.enum(['full', 'read']),
      principal: z.string().describe('Whose credentials they are, as logs have it.'),
    }),
  ),
});

export const seriesQuery = z.object({
  after: z
    .string()
    .regex(/^\d{1,12}$/, 'expected a step')
    .transform(Number)
    .optional()
    .describe('A step: only those after it.'),
});
const points = z.array(z.number().nullable());
export const seriesReply = z.object({
  stepMs: z.int(),
  /** The first of the steps below; step times `stepMs` is when it began. */
  firstStep: z.int(),
  inFlight: points.describe('Requests being worked on at the end of each step; null: no process had it.'),
  services: z.record(
    z.string(),
    z.object({
      requests: points.describe('In each step.'),
      clientErrors: points.describe('Of them answered 4xx.'),
      failures: points.describe('Of them answered 5xx.'),
      p50: points.describe(
        'Seconds, as the buckets of the metrics have it; null where there was no request.',
      ),
      p99: points,
    }),
  ),
});

export const healthReply = z.object({
  services: z.array(
    z.object({
      service: z.string(),
      instance: z.string(),
      backend: z.string(),
      up: z.boolean(),
      reason: z.string().optional(),
    }),
  ),
});

export const errorBody = z.object({ error: z.string(), status: z.int() });
