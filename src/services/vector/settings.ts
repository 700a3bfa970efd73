import { z } from 'zod';
import {
  basePath,
  clientSecret,
  idempotencyWindow,
  instanceName,
  milliseconds,
  missingReason,
  postgresUrl,
  secret,
  serviceSwitch,
  tcpPort,
} from '../../lib/settings/settings.js';
import { MAX_DIMENSION, MAX_HNSW_DIMENSION, SIMILARITY_NAMES, STORAGE_NAMES } from './score.js';

const MIB = 1024 * 1024;

/** What an index holds: vectors, sparse vectors, or both of every record. */
export const INDEX_TYPES = ['DENSE', 'SPARSE', 'HYBRID'] as const;
export type IndexType = (typeof INDEX_TYPES)[number];

// pgvector's own limits of m and ef_construction
export const hnswFields = {
  enabled: z
    .boolean()
    .default(true)
    .describe('Whether large namespaces get an HNSW index; without, every query compares all vectors.'),
  m: z.int().min(2).max(100).default(16).describe('Links of a vector to others in each layer.'),
  efConstruction: z
    .int()
    .min(4)
    .max(1_000)
    .default(64)
    .describe('Candidates while a vector is inserted, at least twice m.'),
  quantisation: z
    .enum(['none', 'binary'])
    .default('none')
    .describe(
      'binary: the graph holds one bit of each component, and what it finds is compared anew by whole vectors. Little memory, also above 4,000 dimensions; for COSINE and DOT_PRODUCT.',
    ),
  buildMemory: z
    .int()
    .min(MIB)
    .max(1024 * 1024 * MIB)
    .nullable()
    .default(null)
    .describe(
      'Bytes that Postgres may use to build an HNSW index; null: its own maintenance_work_mem. 100,000 x 384 need 200 MB.',
    ),
};

const hnswSettings = z.strictObject(hnswFields).refine(({ m, efConstruction }) => efConstruction >= 2 * m, {
  error: 'expected at least twice m',
  path: ['efConstruction'],
});

const embeddingSettings = z.strictObject({
  url: z
    .string()
    .refine((text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), {
      error: 'expected a URL that starts with http:// or https://',
    })
    .nullable()
    .default(null)
    .describe(
      'Address of an OpenAI-compatible embeddings endpoint, such as https://host/v1/embeddings; null: no embedder.',
    ),
  apiKey: secret().nullable().default(null).describe('Sent as bearer token to the embeddings endpoint.'),
  model: z.string().max(256).default('').describe('Name of the embedding model.'),
  sparse: z
    .boolean()
    .default(false)
    .describe(
      'Whether texts get a sparse vector by the built-in word count (BM25 weights), for SPARSE and HYBRID.',
    ),
  batchSize: z.int().min(1).max(2_048).default(96).describe('Most texts in one request for embeddings.'),
  timeoutMs: milliseconds(20_000).describe('Deadline of one request for embeddings in ms.'),
});

/** What an index is; fixed once it exists. */
const kindFields = {
  type: z
    .enum(INDEX_TYPES)
    .default('DENSE')
    .describe('DENSE, SPARSE or HYBRID (every record has both parts). Fixed once the index exists.'),
  dimension: z
    .int()
    .min(1)
    .max(MAX_DIMENSION)
    .default(1536)
    .describe(
      'Components of every dense vector; more than 4,000 only with hnsw.enabled: false. Fixed once the index exists.',
    ),
  similarity: z
    .enum(SIMILARITY_NAMES)
    .default('COSINE')
    .describe('COSINE, EUCLIDEAN or DOT_PRODUCT, of dense vectors. Fixed once the index exists.'),
  storage: z
    .enum(STORAGE_NAMES)
    .default('vector')
    .describe(
      'vector keeps components as float32, halfvec as float16 in half the space. Fixed once the index exists.',
    ),
};

export const limitFields = {
  maxTopK: z.int().min(1).max(10_000).default(1_000).describe('Largest topK of a query.'),
  maxPage: z
    .int()
    .min(1)
    .max(10_000)
    .default(1_000)
    .describe('Most records that one fetch or one page of a range returns.'),
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
  maxResumableQueries: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(1_000)
    .describe(
      'Resumable queries that may be open at once, half of them by each token where there are two; one more is answered 429.',
    ),
};

const requestFields = {
  bodyLimit: z
    .int()
    .min(1024)
    .max(512 * MIB)
    .default(64 * MIB)
    .describe('Largest request body in bytes; 1,000 vectors of 1,536 dimensions take about 30 MB of JSON.'),
  timeoutMs: milliseconds(30_000).describe('Deadline of a request in ms (504).'),
  idempotencyWindow: idempotencyWindow(),
};

interface Dimensioned {
  readonly type: IndexType;
  readonly dimension: number;
  readonly similarity: string;
  readonly hnsw: { readonly enabled: boolean; readonly quantisation: 'none' | 'binary' };
}

const fitsGraph = ({ type, dimension, hnsw }: Dimensioned) =>
  type === 'SPARSE' || !hnsw.enabled || hnsw.quantisation === 'binary' || dimension <= MAX_HNSW_DIMENSION;

/** A sign says nothing of a distance. */
const fitsSigns = ({ type, similarity, hnsw }: Dimensioned) =>
  type === 'SPARSE' || hnsw.quantisation === 'none' || similarity !== 'EUCLIDEAN';

const SIGN_RULE = {
  error: 'expected none with EUCLIDEAN: bits tell of directions only',
  path: ['hnsw', 'quantisation'],
};

const GRAPH_RULE = {
  error: `expected at most ${MAX_HNSW_DIMENSION}, which is what pgvector's HNSW takes, hnsw.quantisation: binary, or hnsw.enabled: false, with which every query compares all vectors`,
  path: ['dimension'],
};

const indexSettings = z
  .strictObject({
    name: instanceName()
      .default('default')
      .describe('Name of the index in logs, metrics and /readyz; its table belongs to this name.'),
    path: basePath().default('/vector').describe('Where the index is served.'),
    port: tcpPort().nullable().default(null).describe('Own port where the index is served at / as well.'),
    ...kindFields,
    hnsw: hnswSettings.prefault({}),
    embedding: embeddingSettings.prefault({}),
    token: clientSecret('PORTICO_VECTOR_TOKEN')
      .nullable()
      .default(null)
      .describe('Bearer token that may do everything.'),
    readOnlyToken: clientSecret('PORTICO_VECTOR_READONLY_TOKEN')
      .nullable()
      .default(null)
      .describe('Bearer token that may read only; null for none.'),
    ...requestFields,
    ...limitFields,
  })
  .refine(fitsGraph, GRAPH_RULE)
  .refine(fitsSigns, SIGN_RULE);

/** What an administrator says of an index that is made at run time. */
export const managedIndex = z
  .strictObject({
    name: instanceName().describe('Name of the index, the last part of its path.'),
    ...kindFields,
    hnsw: hnswSettings.prefault({}),
    countWords: z
      .boolean()
      .default(false)
      .describe('Whether texts get a sparse vector by the built-in word count, for SPARSE and HYBRID.'),
    ...limitFields,
  })
  .refine(fitsGraph, GRAPH_RULE)
  .refine(fitsSigns, SIGN_RULE);

export type ManagedIndex = z.output<typeof managedIndex>;

const managedSettings = z.strictObject({
  path: basePath()
    .default('/vector/indexes')
    .describe('Where indexes are made and dropped, and below which each of them is served.'),
  maxIndexes: z.int().min(1).max(1_000).default(100).describe('Most indexes that are made at run time.'),
  ...requestFields,
});

const databaseSettings = z.strictObject({
  url: postgresUrl('PORTICO_DATABASE_URL').describe(
    'Postgres with pgvector 0.8 or newer, such as postgres://user:password@host:5432/database; of a primary with standbys all hosts: one:5432,two:5432.',
  ),
  schema: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]{0,62}$/, 'expected a plain name: letters, digits and "_", at most 63')
    .default('portico_vector')
    .describe('Postgres schema that holds every table of this service; made when missing.'),
  poolSize: z
    .int()
    .min(1)
    .max(1_000)
    .default(10)
    .describe(
      'Most connections to Postgres at once, at least 2: one is kept for /readyz, the others are shared by all tokens of all indexes.',
    ),
  connectTimeoutMs: milliseconds(1_500).describe('A connection that is not made by then has failed (503).'),
  statementTimeoutMs: milliseconds(25_000).describe('Postgres cancels a statement that runs longer (504).'),
});

/** The section `vector` of the configuration. */
export const vectorSettings = z.strictObject({
  enabled: serviceSwitch(),
  missing: missingReason('PORTICO_VECTOR_MISSING'),
  database: databaseSettings.prefault({}).describe('The Postgres that holds the indexes.'),
  indexes: z
    .array(indexSettings)
    .min(1)
    .prefault([{}])
    .describe('The indexes, each with its own path, dimension and tokens.'),
  adminToken: secret('PORTICO_VECTOR_ADMIN_TOKEN')
    .nullable()
    .default(null)
    .describe('Bearer token that may make, change and drop indexes at run time; null: nobody may.'),
  managed: managedSettings.prefault({}).describe('Indexes that are made at run time.'),
});

export type VectorSettings = z.output<typeof vectorSettings>;
export type IndexSettings = VectorSettings['indexes'][number];
