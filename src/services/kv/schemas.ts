import { z } from 'zod';
import {
  backendUrl,
  basePath,
  instanceName,
  milliseconds,
  missingReason,
  secret,
  tcpPort,
} from '../../lib/settings.js';

const database = z.strictObject({
  name: instanceName().default('default').describe('Name in logs, metrics and /readyz.'),
  path: basePath().default('/kv').describe('Base path of this database.'),
  port: tcpPort()
    .nullable()
    .default(null)
    .describe("Own port where this database is served at / as well (the contract's direct database port)."),
  url: backendUrl(['redis:', 'rediss:'], 'PORTICO_REDIS_URL', /^\/?\d{0,5}$/).describe(
    'Address of Redis or Valkey: redis://user:password@host:port/database, rediss:// for TLS.',
  ),
  token: secret('PORTICO_KV_TOKEN').nullable().default(null).describe('Standard token: any command.'),
  readOnlyToken: secret('PORTICO_KV_READONLY_TOKEN')
    .nullable()
    .default(null)
    .describe(
      'Read Only token: commands that only read, without SCAN, KEYS and RANDOMKEY. null: there is none.',
    ),
  bodyLimit: z
    .int()
    .min(1_024)
    .max(512 * 1024 * 1024)
    .default(32 * 1024 * 1024)
    .describe('Largest request body in bytes (413).'),
  replyLimit: z
    .int()
    .min(1_024)
    .max(512 * 1024 * 1024)
    .default(128 * 1024 * 1024)
    .describe('Bytes that all replies of Redis to one request may have; one beyond is an error entry.'),
  timeoutMs: milliseconds(10_000, 100).describe(
    'A request is answered by then (504). Redis silent for so long while replies are due: the connection is given up.',
  ),
  connectTimeoutMs: milliseconds(5_000, 100).describe('How long one attempt to connect to Redis may take.'),
});

/** The section `kv` of the configuration. */
export const kvSettings = z.strictObject({
  enabled: z.boolean().default(true).describe('Whether the key-value service is served.'),
  missing: missingReason('PORTICO_KV_MISSING').describe(
    'Why npm start could not bring Redis; the service then answers 503 with it.',
  ),
  databases: z
    .array(database)
    .min(1)
    .prefault([{}])
    .describe('Databases, each with an address and tokens of its own.'),
});

export type KvSettings = z.output<typeof kvSettings>;
export type DatabaseSettings = KvSettings['databases'][number];

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
  replies: z.array(z.union([success, failure])).describe('One entry a row, in order.'),
};
