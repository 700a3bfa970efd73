import { z } from 'zod';
import { SIMILARITY_NAMES } from '../score.js';
import { INDEX_TYPES } from '../settings.js';

const result = <S extends z.ZodType>(schema: S) => z.object({ result: schema });

const record = {
  id: z.string(),
  vector: z.array(z.number()).optional(),
  sparseVector: z.object({ indices: z.array(z.int()), values: z.array(z.number()) }).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  data: z.string().optional(),
};

const entries = z.array(
  z.object({ ...record, score: z.number().describe('1 is the best under COSINE and EUCLIDEAN.') }),
);

export const successReply = result(z.literal('Success'));
export const updateReply = result(z.object({ updated: z.int() }));
export const deleteReply = result(z.object({ deleted: z.int() }));
export const renameReply = result(z.object({ renamed: z.boolean() }));
export const namespacesReply = result(z.array(z.string()));
export const queryReply = result(
  entries.describe('For several queries in an array: an array of such lists.'),
);
export const entriesReply = result(entries);
export const resumableReply = result(z.object({ uuid: z.string(), scores: entries }));
export const fetchReply = result(z.array(z.object(record).nullable()));
export const rangeReply = result(
  z.object({ nextCursor: z.string().describe('Empty at the end.'), vectors: z.array(z.object(record)) }),
);
export const countReply = result(z.object({ count: z.int() }));
export const facetsReply = result(
  z.array(
    z.object({
      value: z.union([z.string(), z.number(), z.boolean()]),
      count: z.int().describe('Records that have it.'),
    }),
  ),
);
export const randomReply = result(z.object(record).nullable());

const counts = { vectorCount: z.int(), pendingVectorCount: z.int() };
const dense = {
  dimension: z.int(),
  similarityFunction: z.enum([...SIMILARITY_NAMES, '']).describe('Empty for a sparse index.'),
};

export const infoReply = result(
  z.object({
    ...counts,
    indexSize: z.int().describe('Bytes on disk: rows and indexes.'),
    ...dense,
    indexType: z.enum(INDEX_TYPES),
    denseIndex: z.object({ ...dense, embeddingModel: z.string() }).optional(),
    sparseIndex: z.object({ embeddingModel: z.string() }).optional(),
    namespaces: z.record(
      z.string(),
      z.object({
        ...counts,
        graph: z
          .enum(['ready', 'building', 'deferred', 'none'])
          .optional()
          .describe(
            'With ?explain: whether there is an HNSW index; until one is ready the namespace is compared exactly.',
          ),
        progress: z
          .number()
          .optional()
          .describe('With ?explain: of a graph that is being built, the share of the table that is in it.'),
      }),
    ),
  }),
);

export type IndexInfo = z.output<typeof infoReply>['result'];
