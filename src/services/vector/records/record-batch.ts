import { HttpError } from '../../../http/errors.js';
import type { VectorRecord } from '../schemas/records.js';
import type { IndexSettings } from '../settings.js';
import type { IndexShape } from '../statements/index-shape.js';
import { type ComponentRules, packMany } from './components.js';
import type { Components } from './lifted-vector.js';
import { checkBytes, metadataText } from './metadata.js';
import { type SparseVector, sparseVectorOf, summed } from './sparse-vector.js';

/** What an index asks of the records that it stores. */
export interface RecordRules {
  readonly shape: IndexShape;
  readonly components: ComponentRules;
  /** oid of the type `vector`. */
  readonly vectorType: number;
  readonly limits: Pick<IndexSettings, 'maxMetadataBytes' | 'maxDataBytes'>;
}

/** Records as parameters, one of each id. */
export interface RecordBatch {
  readonly ids: readonly string[];
  /** Parameters of the upsert from its third on. */
  readonly columns: readonly unknown[];
  /** Of a sparse part: parameters of its postings from the third on. */
  readonly postings: readonly [places: number[], indices: number[], values: number[]] | undefined;
}

/**
 * Checks every record and packs the last one of each id, in the order of the request.
 * @param place where a record stands in the request, such as `body.3`, for the error
 * @throws HttpError for the first record that cannot be stored
 */
export function recordBatch(
  records: readonly VectorRecord[],
  rules: RecordRules,
  place: (i: number) => string,
): RecordBatch {
  const { shape, components, vectorType, limits } = rules;
  const dense = records.map((record, i) => densePart(record, shape, place(i)));
  const sparse = shape.sparse ? records.map((record, i) => sparsePart(record, place(i))) : undefined;
  const metadata = records.map((record, i) =>
    isAbsent(record.metadata)
      ? null
      : metadataText(record.metadata, limits.maxMetadataBytes, `${place(i)}.metadata`),
  );
  const data = records.map((record, i) => dataText(record.data, limits.maxDataBytes, `${place(i)}.data`));
  const keep = [...new Map(records.map(({ id }, i) => [id, i])).values()].sort((a, b) => a - b);
  const kept = <T>(column: readonly T[]) => keep.map((i) => column[i] as T);
  const ids = kept(records.map(({ id }) => id));
  const sparseKept = sparse === undefined ? undefined : kept(sparse);
  return {
    ids,
    columns: [
      ids,
      kept(metadata),
      kept(data),
      ...(shape.dense === undefined
        ? []
        : [packMany(dense, keep, components, vectorType, (i) => `${place(i)}.vector`)]),
      ...(sparseKept === undefined
        ? []
        : [
            sparseKept.map(({ indices }) => arrayText(indices)),
            sparseKept.map(({ values }) => arrayText(values)),
          ]),
    ],
    postings: sparseKept === undefined ? undefined : postingsOf(sparseKept),
  };
}

type Absent = null | undefined;

export function isAbsent<T>(value: T | Absent): value is Absent {
  return value === null || value === undefined;
}

export function dataText(data: string | Absent, maxBytes: number, place: string): string | null {
  if (isAbsent(data)) return null;
  checkBytes(data, maxBytes, place);
  return data;
}

/** Postgres' text of an array of numbers. */
export function arrayText(numbers: readonly number[]): string {
  return `{${numbers.join(',')}}`;
}

/** One posting for each index of each record; places count from 1. */
export function postingsOf(vectors: readonly SparseVector[]): [number[], number[], number[]] {
  const places: number[] = [];
  const indices: number[] = [];
  const values: number[] = [];
  vectors.forEach((vector, i) => {
    for (const [index, value] of summed(vector)) {
      places.push(i + 1);
      indices.push(index);
      values.push(Math.fround(value));
    }
  });
  return [places, indices, values];
}

const NO_COMPONENTS: Components = [];

function densePart(record: VectorRecord, { dense, sparse }: IndexShape, place: string): Components {
  // what an index cannot hold is refused by name, never dropped
  if (!sparse && !isAbsent(record.sparseVector))
    throw new HttpError(
      'unprocessable',
      `${place}.sparseVector: this index is dense: it takes no sparseVector`,
    );
  if (dense === undefined) {
    if (isAbsent(record.vector)) return NO_COMPONENTS;
    throw new HttpError('unprocessable', `${place}.vector: this index is sparse: it takes no vector`);
  }
  if (isAbsent(record.vector))
    throw new HttpError('unprocessable', `${place}.vector: every record of this index needs a vector`);
  return record.vector;
}

function sparsePart(record: VectorRecord, place: string): SparseVector {
  if (isAbsent(record.sparseVector))
    throw new HttpError('unprocessable', `${place}.sparseVector: every record of this index needs one`);
  return sparseVectorOf(record.sparseVector, `${place}.sparseVector`);
}
