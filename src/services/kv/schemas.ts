import { z } from 'zod';

const commandBody = z
  .array(z.union([z.string(), z.number(), z.boolean()]))
  .min(1)
  .describe('Command name and arguments in protocol order.');

type Result = null | number | string | Result[];
const result: z.ZodType<Result> = z.lazy(() => z.union([z.null(), z.number(), z.string(), z.array(result)]));

const success = z.object({ result }).describe('The reply of Redis. Integers keep all their digits.');
const failure = z.object({ error: z.string().describe("Redis' own text or Portico's, class word first.") });

/** What the documentation shows of requests and replies; bodies are read as bytes, not by these. */
export const documents = {
  command: commandBody,
  commands: z.array(commandBody).min(1),
  value: z.unknown().describe('Bytes that become the last argument.'),
  reply: success,
  events: z.string().describe('Events `data: <kind>,<name>,...`; see docs/kv.md.'),
  replies: z.array(z.union([success, failure])).describe('One entry a row, in order.'),
};
