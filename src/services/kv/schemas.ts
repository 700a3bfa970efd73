import { z } from 'zod';

// a union of texts and numbers, or one that holds itself, is more than most generators of clients can do
const commandBody = z
  .array(z.unknown().describe('Text, a number, or true or false.'))
  .min(1)
  .describe('Command name and arguments in protocol order.');

const result = z.unknown().describe('null, a number, text, or a list of them and of lists.');

const success = z.object({ result }).describe('The reply of Redis. Integers keep all their digits.');
const failure = z.object({ error: z.string().describe("Redis' own text or Portico's, class word first.") });

/** What the documentation shows of requests and replies; bodies are read as bytes, not by these. */
export const documents = {
  command: commandBody,
  commands: z.array(commandBody).min(1),
  value: z.unknown().describe('Bytes that become the last argument.'),
  reply: success,
  events: z.string().describe('Events `data: <kind>,<name>,...`; see docs/kv.md.'),
  replies: z
    .array(success.extend(failure.shape).partial())
    .describe('Of each row, in order, one of the two.'),
};
