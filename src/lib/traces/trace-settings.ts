import { z } from 'zod';

const HEADERS = /^[\w!#$%&'*+.^`|~-]+=[^,\r\n]*(,[\w!#$%&'*+.^`|~-]+=[^,\r\n]*)*$/;

/** The section `traces` of the configuration. */
export const traceSettings = z.strictObject({
  endpoint: z
    .string()
    .refine((text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), {
      error: 'expected a URL such as http://collector:4318/v1/traces',
    })
    .nullable()
    .default(null)
    .describe(
      'Where spans go: OTLP over HTTP in JSON, such as http://collector:4318/v1/traces. null: no traces.',
    ),
  headers: z
    .string()
    .regex(HEADERS, 'expected name=value, with commas between several')
    .nullable()
    .default(null)
    .meta({ secret: true })
    .describe('Headers that are sent with them: name=value, with commas between several.'),
  serviceName: z.string().min(1).max(200).default('portico').describe('service.name of the spans.'),
  sample: z
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe(
      'Which share of the traces that begin here is taken, from 0 to 1. A request with traceparent follows what that says.',
    ),
});

export type TraceSettings = z.output<typeof traceSettings>;
