import { z } from 'zod';
import { type FilterInput, filter } from './filter.js';
import { idList, includeFlags, namespaceName, prefix } from './names.js';
import { tolerant } from './tolerant.js';

/** Larger than any `maxPage`. */
const MAX_FETCHED = 10_000;
/** Ids of one delete. */
const MAX_DELETED = 100_000;

const ids = (max: number) =>
  idList(max)
    .nullish()
    .transform((value) => value ?? undefined);

export const fetchBody = z
  .preprocess(
    (body) => (Array.isArray(body) ? { ids: body } : body),
    tolerant({ ids: ids(MAX_FETCHED), prefix, filter, ...includeFlags }),
  )
  .refine((body) => body.ids === undefined || (body.prefix === undefined && body.filter === undefined), {
    error: 'Only one of ids or prefix must be provided.',
  })
  .refine((body) => body.ids !== undefined || body.prefix !== undefined || body.filter !== undefined, {
    error: 'One of ids or prefix must be provided.',
  });

export type FetchBody = z.output<typeof fetchBody>;

/** Number of a namespace's record; at most what Postgres' bigint holds with certainty. */
const cursor = z
  .union([z.string(), z.number()], { error: 'expected a cursor' })
  .nullish()
  .transform((value) => (value === '' ? '0' : String(value ?? '0')))
  .refine((text) => /^\d{1,18}$/.test(text), 'expected 0 or the nextCursor of an earlier reply')
  .meta({ documentedAs: { type: 'string' } })
  .describe('0 for the beginning, later the nextCursor of the reply before.');

const limit = z.int().min(1);

export const rangeBody = tolerant({
  cursor,
  limit: limit
    .nullish()
    .describe('Most records of this page, 100 by default, or of the whole stream, which needs no limit.'),
  prefix,
  filter,
  ...includeFlags,
});

export type RangeBody = z.output<typeof rangeBody>;

export const countBody = z
  .strictObject({ prefix, filter })
  .nullish()
  .transform((body) => body ?? {});

export type CountBody = { readonly prefix?: string | undefined; readonly filter?: FilterInput | undefined };

export const facetsBody = z.strictObject({
  field: z
    .string('expected text')
    .min(1)
    .max(4_096)
    .describe('Path of a field of the metadata, as in a filter.'),
  limit: z
    .int()
    .min(1)
    .max(1_000)
    .nullish()
    .transform((value) => value ?? 10)
    .describe('Most values, 10 by default: those that most records have.'),
  prefix,
  filter,
});

export type FacetsBody = z.output<typeof facetsBody>;

export const rangeHeaders = z.object({
  accept: z.string().optional().describe('application/x-ndjson: the records to the end, a line each.'),
});

const selection = z.strictObject({
  ids: z
    .preprocess(
      (value) => (typeof value === 'string' || typeof value === 'number' ? [value] : value),
      ids(MAX_DELETED),
    )
    .describe('Ids to delete; one alone may stand without the array.'),
  prefix,
  filter,
});

export const ONE_SELECTION = 'Only and only one of the ids, prefix, or filter must be provided.';

/** Several clients send an array, one sends an id alone. */
export const deleteBody = z
  .preprocess((body) => {
    const isId = typeof body === 'string' || typeof body === 'number';
    return isId || Array.isArray(body) ? { ids: body } : (body ?? {});
  }, selection)
  .refine((body) => [body.ids, body.prefix, body.filter].filter((part) => part !== undefined).length === 1, {
    error: ONE_SELECTION,
  });

export type DeleteBody = z.output<typeof deleteBody>;

/** SDKs send `[]`. A namespace in the body would be passed over, and another one emptied. */
export const resetBody = z
  .unknown()
  .refine((value) => value == null || (typeof value === 'object' && Object.keys(value).length === 0), {
    error: 'expected none: the namespace stands in the path, as in /reset/{namespace}',
  });

/** `reset?all`: the key without a value. */
export const resetQuery = z.strictObject({
  all: z
    .string()
    .optional()
    .transform((text) => text !== undefined && text !== 'false')
    .describe('Empties every namespace.'),
});

/** `info?explain`: the key without a value. */
export const infoQuery = z.object({
  explain: z
    .string()
    .optional()
    .transform((text) => text !== undefined && text !== 'false')
    .describe('Tells of each namespace whether it has a graph.'),
});

export const graphBody = z.strictObject({
  defer: z
    .boolean()
    .describe(
      'true: the namespace has no graph while records come, and gets one when none have come for a minute; false: now.',
    ),
});

export const renameBody = z.strictObject({
  namespace: namespaceName,
  newNamespace: namespaceName,
  deleteExisting: z
    .boolean()
    .nullish()
    .transform((value) => value === true)
    .describe('Whether a namespace that has the new name is deleted first.'),
});

export type RenameBody = z.output<typeof renameBody>;
