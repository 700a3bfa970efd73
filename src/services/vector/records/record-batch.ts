import { HttpError } from '../../../http/errors.js';
import type { Components } from '../schemas/lifted-vector.js';
import type { VectorRecord } from '../schemas/records.js';
import type { IndexSettings } from '../settings.js';
import type { IndexShape } from '../statements/index-shape.js';
import { type ComponentRules, packMany, packOne } from './components.js';
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

/** Bytes of one statement: what is encoded for Postgres in one go, 10 ms, and held a second and a third time meanwhile. */
const BATCH_BYTES = 8 * 1024 * 1024;
const BATCH_RECORDS = 5_000;
/** What a posting counts: its place, index and value become text and back, 0.3 µs each. */
const POSTING_BYTES = 200;

/**
 * Checks every record and packs the last one of each id, in the order of the request. Many are several batches; rests
 * after each record.
 * @param place where a record stands in the request, such as `body.3`, for the error
 * @throws HttpError for the first record that cannot be stored
 */
export function* recordBatches(
  records: readonly VectorRecord[],
  rules: RecordRules,
  place: (i: number) => string,
): Generator<void, RecordBatch[]> {
  const last = new Map<string, number>();
  for (let i = 0; i < records.length; i++) last.set((records[i] as VectorRecord).id, i);
  const batches: RecordBatch[] = [];
  let batch = new BatchColumns(rules);
  for (let i = 0; i < records.length; i++) {
    const record = records[i] as VectorRecord;
    batch.add(record, place(i), last.get(record.id) === i);
    if (batch.isFull) {
      batches.push(batch.pack());
      batch = new BatchColumns(rules);
    }
    yield;
  }
  if (!batch.isEmpty || batches.length === 0) batches.push(batch.pack());
  return batches;
}

/** The columns of a batch as they grow. */
class BatchColumns {
  private readonly ids: string[] = [];
  private readonly metadata: (string | null)[] = [];
  private readonly data: (string | null)[] = [];
  private readonly vectors: Components[] = [];
  private readonly places: string[] = [];
  private readonly sparse: SparseVector[] = [];
  private bytes = 0;

  constructor(private readonly rules: RecordRules) {}

  get isEmpty(): boolean {
    return this.ids.length === 0;
  }

  get isFull(): boolean {
    return this.bytes >= BATCH_BYTES || this.ids.length >= BATCH_RECORDS;
  }

  /** @param kept whether it is stored, or only checked @throws HttpError */
  add(record: VectorRecord, place: string, kept: boolean): void {
    const { shape, components, limits } = this.rules;
    const vector = densePart(record, shape, place);
    const sparse = shape.sparse ? sparsePart(record, place) : undefined;
    const metadata = isAbsent(record.metadata)
      ? null
      : metadataText(record.metadata, limits.maxMetadataBytes, `${place}.metadata`);
    const data = dataText(record.data, limits.maxDataBytes, `${place}.data`);
    if (!kept) {
      if (shape.dense !== undefined) packOne(vector, components, `${place}.vector`);
      return;
    }
    this.ids.push(record.id);
    this.metadata.push(metadata);
    this.data.push(data);
    this.vectors.push(vector);
    this.places.push(place);
    if (sparse !== undefined) this.sparse.push(sparse);
    this.bytes +=
      4 * vector.length +
      record.id.length +
      (metadata?.length ?? 0) +
      (data?.length ?? 0) +
      POSTING_BYTES * (sparse?.indices.length ?? 0);
  }

  pack(): RecordBatch {
    const { rules, ids, vectors, places, sparse } = this;
    const { shape, components, vectorType } = rules;
    return {
      ids,
      columns: [
        ids,
        this.metadata,
        this.data,
        ...(shape.dense === undefined
          ? []
          : [packMany(vectors, components, vectorType, (i) => `${places[i]}.vector`)]),
        ...(shape.sparse
          ? [sparse.map(({ indices }) => arrayText(indices)), sparse.map(({ values }) => arrayText(values))]
          : []),
      ],
      postings: shape.sparse ? postingsOf(sparse) : undefined,
    };
  }
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
