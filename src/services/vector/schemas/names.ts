import { z } from 'zod';

/** Longest id and longest namespace, in bytes of UTF-8: both stand in btree keys, which end at 2,704 bytes. */
export const NAME_BYTES = 1_024;

/** Text that Postgres can store: no U+0000, no half of a surrogate pair. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && !/\p{Surrogate}/u.test(text);
}

export const storable = 'expected text without U+0000 and without lone surrogates';
const tooLong = `expected at most ${NAME_BYTES} bytes`;

const fits = (text: string) => Buffer.byteLength(text) <= NAME_BYTES;

/** Numbers are ids, too; they come back as text. So is the empty text, which the hosted product takes. */
export const id = z
  .union([z.string(), z.number()], { error: 'expected a string or a number' })
  // JSON.parse has rounded it: two records could end up under one id
  .refine(
    (value) => typeof value === 'string' || Math.abs(value) <= Number.MAX_SAFE_INTEGER,
    `expected a number of at most ${Number.MAX_SAFE_INTEGER}: send a longer id as a string`,
  )
  .transform(String)
  .refine(isStorable, storable)
  .refine(fits, tooLong);

/** Beginning of ids; the empty one and null mean none. */
export const prefix = z
  .string('expected text')
  .refine(isStorable, storable)
  .refine(fits, tooLong)
  .nullish()
  .transform((text) => (text === null || text === '' ? undefined : text))
  .describe('Beginning of the ids that are meant.');

export const namespaceName = z.string('expected text').refine(isStorable, storable).refine(fits, tooLong);

/** Everything after the command is the namespace, further slashes included. */
export const namespaceParams = z.object({
  namespace: z
    .custom<string[]>(Array.isArray)
    .meta({ type: 'string', description: `Namespace, at most ${NAME_BYTES} bytes.` })
    .transform((segments) => segments.join('/'))
    .refine(isStorable, storable)
    .refine(fits, tooLong),
});

/** Left out or null: false. As text too, which the hosted product's own examples send. */
export const flag = z
  .union([z.boolean(), z.literal(['true', 'false'])], { error: 'expected true or false' })
  .nullish()
  .transform((value) => value === true || value === 'true');

/** What of a record a reply carries beside its id. */
export const includeFlags = {
  includeMetadata: flag.describe('Whether entries carry their metadata.'),
  includeVectors: flag.describe('Whether entries carry their vector, dense and sparse.'),
  includeData: flag.describe('Whether entries carry their data.'),
};

/** One element or an array of them; always an array afterwards. */
export const oneOrMany = <S extends z.ZodType>(element: S) => {
  const shown = { io: 'input', unrepresentable: 'any' } as const;
  const { $schema: _, ...one } = z.toJSONSchema(element, shown) as Record<string, unknown>;
  return z
    .preprocess((body) => (Array.isArray(body) ? body : [body]), z.array(element))
    .meta({ anyOf: [one, { type: 'array', items: one }] });
};
