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
import { MAX_DIMENSION, SIMILARITY_NAMES } from './score.js';

const MIB = 1024 * 1024;

const indexSettings = z.strictObject({
  name: instanceName()
    .default('default')
    .describe('Name of the index in logs, metrics and /readyz; its table belongs to this name.'),
  path: basePath().default('/vector').describe('Where the index is served.'),
  port: tcpPort().nullable().default(null).describe('Own port where the index is served at / as well.'),
  dimension: z
    .int()
    .min(1)
    .max(MAX_DIMENSION)
    .default(1536)
    .describe('Components of every vector. Fixed once the index exists.'),
  similarity: z
    .enum(SIMILARITY_NAMES)
    .default('COSINE')
    .describe('COSINE, EUCLIDEAN or DOT_PRODUCT. Fixed once the index exists.'),
  token: secret('PORTICO_VECTOR_TOKEN')
    .nullable()
    .default(null)
    .describe('Bearer token that may do everything.'),
  readOnlyToken: secret()
    .nullable()
    .default(null)
    .describe('Bearer token that may read only; null for none.'),
  bodyLimit: z
    .int()
    .min(1024)
    .max(512 * MIB)
    .default(64 * MIB)
    .describe('Largest request body in bytes; 1,000 vectors of 1,536 dimensions take about 30 MB of JSON.'),
  timeoutMs: milliseconds(30_000).describe('Deadline of a request in ms (504).'),
  maxTopK: z.int().min(1).max(10_000).default(1_000).describe('Largest topK of a query.'),
  maxMetadataBytes: z
    .int()
    .min(2)
    .max(64 * MIB)
    .default(64 * 1024)
    .describe('Largest metadata of one vector, in bytes of JSON.'),
  maxDataBytes: z
    .int()
    .min(0)
    .max(64 * MIB)
    .default(MIB)
    .describe('Largest data of one vector, in bytes of UTF-8.'),
});

const databaseSettings = z.strictObject({
  url: backendUrl(['postgres:', 'postgresql:'], 'PORTICO_DATABASE_URL').describe(
    'Postgres with pgvector 0.8 or newer, such as postgres://user:password@host:5432/database.',
  ),
  schema: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]{0,62}$/, 'expected a plain name: letters, digits and "_", at most 63')
    .default('portico_vector')
    .describe('Postgres schema that holds every table of this service; made when missing.'),
  poolSize: z.int().min(1).max(1_000).default(10).describe('Most connections to Postgres at once.'),
  connectTimeoutMs: milliseconds(1_500).describe('A connection that is not made by then has failed (503).'),
  statementTimeoutMs: milliseconds(25_000).describe('Postgres cancels a statement that runs longer (504).'),
});

/** The section `vector` of the configuration. */
export const vectorSettings = z.strictObject({
  enabled: z.boolean().default(true).describe('Whether the service is there at all.'),
  missing: missingReason('PORTICO_VECTOR_MISSING').describe(
    'Why Postgres with pgvector could not be had; the service then answers 503 with it.',
  ),
  database: databaseSettings.prefault({}).describe('The Postgres that holds the indexes.'),
  indexes: z
    .array(indexSettings)
    .min(1)
    .prefault([{}])
    .describe('The indexes, each with its own path, dimension and tokens.'),
});

export type VectorSettings = z.output<typeof vectorSettings>;
export type IndexSettings = VectorSettings['indexes'][number];

/** Longest id and longest namespace, in bytes of UTF-8: both stand in btree keys, which end at 2,704 bytes. */
export const NAME_BYTES = 1_024;

/** Text that Postgres can store: no U+0000, no half of a surrogate pair. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && !/\p{Surrogate}/u.test(text);
}

const storable = 'expected text without U+0000 and without lone surrogates';
const tooLong = `expected at most ${NAME_BYTES} bytes`;

const id = z
  .union([z.string(), z.number()], { error: 'expected a string or a number' })
  // JSON.parse has rounded it: two records could end up under one id
  .refine(
    (value) => typeof value === 'string' || Math.abs(value) <= Number.MAX_SAFE_INTEGER,
    `expected a number of at most ${Number.MAX_SAFE_INTEGER}: send a longer id as a string`,
  )
  .transform(String)
  .refine((text) => text !== '', 'expected at least one character')
  .refine(isStorable, storable)
  .refine((text) => Buffer.byteLength(text) <= NAME_BYTES, tooLong);

/** Its components are checked where they are packed: that pass over millions of numbers is made once. */
const components = z.custom<readonly unknown[]>(Array.isArray, 'expected an array of numbers').meta({
  type: 'array',
  items: { type: 'number' },
  description: 'As many components as the index has dimensions.',
});

const metadata = z
  .custom<Readonly<Record<string, unknown>>>(
    (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    'expected an object',
  )
  .meta({ type: 'object', description: 'Free JSON object.' });

/** The parts that a dense index cannot hold are known, so that they are refused by name and never dropped. */
const vectorRecord = z.strictObject({
  id,
  vector: components.nullish(),
  sparseVector: z.null('this index is dense: it takes no sparseVector').optional(),
  metadata: metadata.nullish(),
  data: z.string().refine(isStorable, storable).nullish(),
});

export type VectorRecord = z.output<typeof vectorRecord>;

const oneOrMany = <S extends z.ZodType>(element: S) => {
  const shown = { io: 'input', unrepresentable: 'any' } as const;
  const { $schema: _, ...one } = z.toJSONSchema(element, shown) as Record<string, unknown>;
  return z
    .preprocess((body) => (Array.isArray(body) ? body : [body]), z.array(element))
    .meta({ anyOf: [one, { type: 'array', items: one }] });
};

export const upsertBody = oneOrMany(vectorRecord);

const flag = z
  .boolean()
  .nullish()
  .transform((value) => value === true);

export const queryBody = z.strictObject({
  vector: components,
  sparseVector: z.null('this index is dense: it takes no sparseVector').optional(),
  topK: z
    .int()
    .min(1)
    .nullish()
    .transform((value) => value ?? 10),
  includeMetadata: flag.describe('Whether entries carry their metadata.'),
  includeVectors: flag.describe('Whether entries carry their vector.'),
  includeData: flag.describe('Whether entries carry their data.'),
  filter: z
    .literal('', 'this gateway does not filter by metadata')
    .nullish()
    .describe('Must be empty: queries are not filtered by metadata.'),
});

export type QueryBody = z.output<typeof queryBody>;

/** Everything after the command is the namespace, further slashes included. */
export const namespaceParams = z.object({
  namespace: z
    .custom<string[]>(Array.isArray)
    .meta({ type: 'string', description: `Namespace, at most ${NAME_BYTES} bytes.` })
    .transform((segments) => segments.join('/'))
    .refine(isStorable, storable)
    .refine((text) => Buffer.byteLength(text) <= NAME_BYTES, tooLong),
});

export const upsertReply = z.object({ result: z.literal('Success') });

export const queryReply = z.object({
  result: z.array(
    z.object({
      id: z.string(),
      score: z.number().describe('1 is the best under COSINE and EUCLIDEAN.'),
      vector: z.array(z.number()).optional(),
      metadata: z.record(z.string(), z.unknown()).optional(),
      data: z.string().optional(),
    }),
  ),
});

const counts = { vectorCount: z.int(), pendingVectorCount: z.int() };
const denseIndex = { dimension: z.int(), similarityFunction: z.enum(SIMILARITY_NAMES) };

export const infoReply = z.object({
  result: z.object({
    ...counts,
    indexSize: z.int().describe('Bytes on disk: rows and indexes.'),
    ...denseIndex,
    indexType: z.literal('DENSE'),
    denseIndex: z.object({ ...denseIndex, embeddingModel: z.string() }),
    namespaces: z.record(z.string(), z.object(counts)),
  }),
});

export type IndexInfo = z.output<typeof infoReply>['result'];

export const errorReply = z.object({ error: z.string(), status: z.int() });
