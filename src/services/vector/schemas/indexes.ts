import { z } from 'zod';
import { SIMILARITY_NAMES, STORAGE_NAMES } from '../score.js';
import { hnswFields, INDEX_TYPES, limitFields, managedIndex } from '../settings.js';

export const indexParams = z.object({ index: z.string().describe('Name of an index made at run time.') });

export const createIndexBody = managedIndex;

const changed = <S extends z.ZodType>(field: z.ZodDefault<S>) => field.unwrap().optional();

/** What of an index can be changed once it exists. */
export const alterIndexBody = z.strictObject({
  hnsw: z
    .strictObject({
      enabled: changed(hnswFields.enabled),
      m: changed(hnswFields.m),
      efConstruction: changed(hnswFields.efConstruction),
      quantisation: changed(hnswFields.quantisation),
      buildMemory: changed(hnswFields.buildMemory),
    })
    .optional()
    .describe('With another m, efConstruction or quantisation graphs are built anew beside the old ones.'),
  countWords: z.boolean().optional(),
  maxTopK: changed(limitFields.maxTopK),
  maxPage: changed(limitFields.maxPage),
  maxMetadataBytes: changed(limitFields.maxMetadataBytes),
  maxDataBytes: changed(limitFields.maxDataBytes),
  maxResumableQueries: changed(limitFields.maxResumableQueries),
  rotateTokens: z.boolean().optional().describe('Whether its tokens are void from now, and it gets others.'),
});

export type AlterIndexBody = z.output<typeof alterIndexBody>;

const described = {
  name: z.string(),
  path: z.string().describe('Where the index is served.'),
  source: z
    .enum(['configuration', 'administrator'])
    .describe('Who has made it: what is declared in the configuration is changed there.'),
  type: z.enum(INDEX_TYPES),
  dimension: z.int().nullable(),
  similarity: z.enum(SIMILARITY_NAMES).nullable(),
  storage: z.enum(STORAGE_NAMES),
  vectorCount: z.int(),
  status: z.enum(['up', 'down']),
  reason: z.string().optional().describe('Why it is down.'),
};

const managed = {
  hnsw: z.object({
    enabled: z.boolean(),
    m: z.int(),
    efConstruction: z.int(),
    quantisation: z.enum(['none', 'binary']),
    buildMemory: z.int().nullable(),
  }),
  countWords: z.boolean(),
  maxTopK: z.int(),
  maxPage: z.int(),
  maxMetadataBytes: z.int(),
  maxDataBytes: z.int(),
  maxResumableQueries: z.int(),
  token: z.string(),
  readOnlyToken: z.string(),
};

const listed = z.object(described);
const whole = z.object({ ...described, ...managed });

export type ListedIndex = z.output<typeof listed>;
export type DescribedIndex = z.output<typeof whole>;

export const indexesReply = z.object({ result: z.array(listed) });
export const indexReply = z.object({ result: whole });
