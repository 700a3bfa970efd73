import { z } from 'zod';

/** Longest id and longest namespace, in bytes of UTF-8: both stand in btree keys, which end at 2,704 bytes. */
export const NAME_BYTES = 1_024;

/** Text that Postgres can store: no U+0000, no half of a surrogate pair. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

export const storable = 'expected text without U+0000 and without lone surrogates';
const tooLong = `expected at most ${NAME_BYTES} bytes`;

const fits = (text: string) => text.length <= NAME_BYTES && Buffer.byteLength(text) <= NAME_BYTES;

/** An id as text, or what is wrong with it. */
function idOf(value: unknown): { readonly id: string } | { readonly problem: string } {
  if (typeof value !== 'string' && typeof value !== 'number')
    return { problem: 'expected a string or a number' };
  // JSON.parse has rounded it: two records could end up under one id
  if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER) return { problem: unsafe };
  const id = String(value);
  if (!isStorable(id)) return { problem: storable };
  return fits(id) ? { id } : { problem: tooLong };
}

const unsafe = `expected a number of at most ${Number.MAX_SAFE_INTEGER}: send a longer id as a string`;
/** For the documentation. */
const idSchema = { type: 'string' as const, description: 'A number is taken as well.' };

/** Numbers are ids, too; they come back as text. So is the empty text, which the hosted product takes. */
export const id = z
  .unknown()
  .meta(idSchema)
  .transform((value, context) => {
    const read = idOf(value);
    if ('id' in read) return read.id;
    context.addIssue({ code: 'custom', message: read.problem });
    return z.NEVER;
  });

/** A list of ids, whose count is judged first and which the first faulty one ends: 0.1 µs an id where a schema each took 4.5. */
export const idList = (max: number) =>
  z
    .unknown()
    .meta({ type: 'array', maxItems: max, items: idSchema })
    .transform((value, context) => {
      const wrong = (message: string, path: PropertyKey[] = []) => {
        context.addIssue({ code: 'custom', message, path });
        return z.NEVER;
      };
      if (!Array.isArray(value)) return wrong('expected an array of ids');
      if (value.length > max) return wrong(`${value.length} ids, more than the limit of ${max}`);
      const ids: string[] = [];
      for (let i = 0; i < value.length; i++) {
        const read = idOf(value[i]);
        if ('problem' in read) return wrong(read.problem, [i]);
        ids.push(read.id);
      }
      return ids;
    });

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
  .transform((value) => value === true || value === 'true')
  .meta({ documentedAs: { type: 'boolean' } });

/** What of a record a reply carries beside its id. */
export const includeFlags = {
  includeMetadata: flag.describe('Whether entries carry their metadata.'),
  includeVectors: flag.describe('Whether entries carry their vector, dense and sparse.'),
  includeData: flag.describe('Whether entries carry their data.'),
};
