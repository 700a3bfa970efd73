import { z } from 'zod';

/** A filter as a request has it: text, or JSON. */
export type FilterInput = string | Readonly<Record<string, unknown>>;

export const filter = z
  .custom<FilterInput>(
    (value) =>
      typeof value === 'string' || (typeof value === 'object' && value !== null && !Array.isArray(value)),
    'expected text or an object',
  )
  .nullish()
  .transform((value) => (isNone(value) ? undefined : value))
  .describe(
    'Condition on the metadata, such as: year >= 1990 AND genre IN (\'drama\', \'noir\'); or as JSON: {"year": {"$gte": 1990}}.',
  );

function isNone(value: FilterInput | null | undefined): value is null | undefined {
  return value === null || value === undefined || (typeof value === 'string' && value.trim() === '');
}
