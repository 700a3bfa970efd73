import { z } from 'zod';
import { boundedList } from '../../../lib/bounded-list.js';
import { MAX_EF_SEARCH } from '../vector-database.js';
import { filter } from './filter.js';
import { flag, id, includeFlags } from './names.js';
import { components, sparseVector } from './records.js';
import { tolerant } from './tolerant.js';

/** Most queries in one request. */
export const MAX_QUERIES = 100;

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
  explain: flag.describe(
    'Whether the header Vector-Plan of the reply says how each query was answered: exact, graph, sparse or hybrid.',
  ),
  minScore: z
    .number()
    .nullish()
    .transform((value) => value ?? undefined)
    .describe('Entries with a lower score are left out.'),
};

const topK = positive
  .nullish()
  .transform((value) => value ?? 10)
  .describe('Most entries of the result, 10 by default.');

const byVector = {
  vector: components.nullish(),
  sparseVector: sparseVector.nullish(),
  topK,
  ...choices,
};
const groups = {
  groupBy: z
    .string('expected text')
    .min(1)
    .max(4_096)
    .nullish()
    .transform((path) => path ?? undefined)
    .describe('Path of a field of the metadata: at most groupSize entries have the same value there.'),
  groupSize: z
    .int()
    .min(1)
    .max(100)
    .nullish()
    .transform((size) => size ?? undefined)
    .describe('Most entries with one value of groupBy, 1 by default.'),
};
const vectorQuery = tolerant(byVector);
const anyQuery = tolerant({
  id: id
    .optional()
    .describe('Of a record, instead of a vector: what is near to it. It is not among the results itself.'),
  ...byVector,
  ...groups,
});

/** By a vector, or by the record that has one. */
export type AnyQuery = z.output<typeof anyQuery>;

export type VectorQuery = z.output<typeof vectorQuery>;

/** A query that may have groups. */
export type GroupedQuery = VectorQuery & {
  readonly groupBy?: string | undefined;
  readonly groupSize?: number | undefined;
};

const byText = {
  data: z.string('expected text'),
  topK,
  queryMode: z
    .enum(['HYBRID', 'DENSE', 'SPARSE'])
    .nullish()
    .transform((mode) => mode ?? 'HYBRID')
    .describe('Which parts of a hybrid index are asked.'),
  ...choices,
};
const textQuery = tolerant({ ...byText, ...groups });

export type TextQuery = Omit<z.output<typeof textQuery>, 'groupBy' | 'groupSize'>;

const several = <S extends z.ZodType>(query: S) =>
  boundedList(query, { max: MAX_QUERIES, orOne: 'shown', of: 'queries' });

export const queryBody = several(anyQuery);
export const queryDataBody = several(textQuery);

const maxIdle = z
  .number()
  .positive()
  .max(86_400)
  .nullish()
  .transform((value) => value ?? 3_600)
  .describe('Seconds without a request after which it ends, 3,600 by default.');

export const resumableBody = tolerant({ ...byVector, maxIdle });
export const resumableDataBody = tolerant({ ...byText, maxIdle });

const uuid = z.string('expected text').max(64);

export const resumeBody = z.strictObject({ uuid, additionalK: positive });
export const endBody = z.strictObject({ uuid });
