import { z } from 'zod';
import { boundedList } from '../../../lib/bounded-list.js';
import { filter } from './filter.js';
import { type Components, LiftedVector } from './lifted-vector.js';
import { id, isStorable, prefix, storable } from './names.js';

/** Its components are checked where they are packed: that pass over millions of numbers is made once. */
export const components = z
  .custom<Components>(
    (value) => Array.isArray(value) || value instanceof LiftedVector,
    'expected an array of numbers',
  )
  .meta({
    type: 'array',
    items: { type: 'number' },
    description: 'As many components as the index has dimensions.',
  });

const list = (description: string, type: 'integer' | 'number') =>
  z
    .custom<readonly unknown[]>(Array.isArray, 'expected an array of numbers')
    .meta({ type: 'array', items: { type }, description });

/** Checked where it is packed, as the components are. */
export const sparseVector = z.strictObject({
  indices: list('Signed 32-bit integers.', 'integer'),
  values: list('As many numbers as indices.', 'number'),
});

export type SparseInput = z.output<typeof sparseVector>;

export type Metadata = Readonly<Record<string, unknown>>;

const metadata = z
  .custom<Metadata>(
    (value) => typeof value === 'object' && value !== null && (!Array.isArray(value) || value.length === 0),
    'expected an object',
  )
  // what PHP makes of an object without keys
  .transform((value) => (Array.isArray(value) ? {} : value))
  .meta({ type: 'object', description: 'Free JSON object.' });

const data = z.string('expected text').refine(isStorable, storable);

/** A record as it is sent; which parts it must have depends on the index. */
export const vectorRecord = z.strictObject({
  id,
  vector: components.nullish(),
  sparseVector: sparseVector.nullish(),
  metadata: metadata.nullish(),
  data: data.nullish(),
});

export type VectorRecord = z.output<typeof vectorRecord>;

/** Most records of one JSON body; lines of JSON have no such limit. With 50,000 small ones the gateway needs 60 MiB. */
export const MAX_RECORDS = 50_000;

const records = <S extends z.ZodType>(record: S) =>
  boundedList(record, { max: MAX_RECORDS, orOne: true, of: 'records' });

export const upsertBody = records(vectorRecord);

/** A record whose vectors come from its data. */
export const textRecord = z.strictObject({ id, data, metadata: metadata.nullish() });

export type TextRecord = z.output<typeof textRecord>;

export const upsertDataBody = records(textRecord);

const change = {
  vector: components.nullish(),
  sparseVector: sparseVector.nullish(),
  metadata: metadata.nullish(),
  data: data.nullish(),
  metadataUpdateMode: z
    .enum(['OVERWRITE', 'PATCH'])
    .nullish()
    .transform((mode) => mode ?? 'OVERWRITE')
    .describe('PATCH merges as RFC 7396 says; OVERWRITE, the default, replaces.'),
};

/** Of one record; or of all that a filter or a prefix finds: their metadata alone, or all would get one vector. */
export const updateBody = z
  .strictObject({ id: id.optional(), prefix, filter, ...change })
  .superRefine((body, context) => {
    const wrong = (message: string, ...path: string[]) => context.addIssue({ code: 'custom', message, path });
    const isMany = body.prefix !== undefined || body.filter !== undefined;
    if ((body.id !== undefined) === isMany) wrong('expected either an id, or a filter or prefix', 'id');
    if (!isMany) return;
    if (body.metadata == null) wrong('by filter or prefix: expected metadata', 'metadata');
    if (body.vector != null || body.sparseVector != null || body.data != null)
      wrong('by filter or prefix only metadata can be updated');
  });

export type AnyUpdate = z.output<typeof updateBody>;

/** Of one record. */
export type UpdateBody = Omit<AnyUpdate, 'id' | 'prefix' | 'filter'> & { readonly id: string };
