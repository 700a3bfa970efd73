import { z } from 'zod';
import { boundedList } from '../../../lib/bounded-list.js';
import { MAX_EF_SEARCH } from '../vector-database.js';
import { flag, includeFlags } from './names.js';
import { components, sparseVector } from './records.js';

/** Most queries in one request. */
export const MAX_QUERIES = 100;

export const filter = z
  .string('expected text')
  .nullish()
  .transform((text) => (text === null || text?.trim() === '' ? undefined : text))
  .describe("Condition on the metadata, such as: year >= 1990 AND genre IN ('drama', 'noir').");

const positive = z.int().min(1);

const choices = {
  ...includeFlags,
  filter,
  weightingStrategy: z
    .literal('IDF')
    .nullish()
    .describe('IDF weighs the values of a sparse query by how rare their indices are.'),
  fusionAlgorithm: z
    .enum(['RRF', 'DBSF'])
    .nullish()
    .transform((name) => name ?? 'RRF')
    .describe('How a hybrid query joins its two lists: RRF (default) or DBSF.'),
  ef: z
    .int()
    .min(1)
    .max(MAX_EF_SEARCH)
    .nullish()
    .transform((value) => value ?? undefined)
    .describe('Candidates that HNSW keeps for this query: more finds more and takes longer.'),
  exact: flag.describe('Whether every vector is compared.'),
};

const topK = positive
  .nullish()
  .transform((value) => value ?? 10)
  .describe('Most entries of the result, 10 by default.');

const vectorQuery = z.strictObject({
  vector: components.nullish(),
  sparseVector: sparseVector.nullish(),
  topK,
  ...choices,
});

export type VectorQuery = z.output<typeof vectorQuery>;

const textQuery = z.strictObject({
  data: z.string('expected text'),
  topK,
  queryMode: z
    .enum(['HYBRID', 'DENSE', 'SPARSE'])
    .nullish()
    .transform((mode) => mode ?? 'HYBRID')
    .describe('Which parts of a hybrid index are asked.'),
  ...choices,
});

export type TextQuery = z.output<typeof textQuery>;

const several = <S extends z.ZodType>(query: S) =>
  boundedList(query, { max: MAX_QUERIES, orOne: true, of: 'queries' });

export const queryBody = several(vectorQuery);
export const queryDataBody = several(textQuery);

const maxIdle = z
  .number()
  .positive()
  .max(86_400)
  .nullish()
  .transform((value) => value ?? 3_600)
  .describe('Seconds without a request after which it ends, 3,600 by default.');

export const resumableBody = vectorQuery.extend({ maxIdle });
export const resumableDataBody = textQuery.extend({ maxIdle });

const uuid = z.string('expected text').max(64);

export const resumeBody = z.strictObject({ uuid, additionalK: positive });
export const endBody = z.strictObject({ uuid });
