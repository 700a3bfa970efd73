import { HttpError } from '../../../http/errors.js';
import type { SparseInput } from '../schemas/records.js';

/** A sparse vector as float32 numbers, in the order in which it was sent; indices may repeat. */
export interface SparseVector {
  readonly indices: readonly number[];
  readonly values: readonly number[];
}

/** Most values of a sparse vector, as in the hosted product. */
export const MAX_SPARSE_VALUES = 1_000;

const INT32_MAX = 2_147_483_647;
const INT32_MIN = -2_147_483_648;
/** Sums of 1,000 values, and products of two such sums, stay finite as float32. */
const LARGEST_VALUE = 1e15;

/**
 * Checks what was sent.
 * @param place where it stands in the request, for the error
 * @throws HttpError 400 for what is no number, 422 for lists that differ in length or are too long, and for numbers out of range
 */
export function sparseVectorOf({ indices, values }: SparseInput, place: string): SparseVector {
  if (indices.length !== values.length) {
    throw new HttpError(
      'unprocessable',
      `${place}: ${indices.length} indices and ${values.length} values, expected as many of both`,
    );
  }
  if (indices.length > MAX_SPARSE_VALUES) {
    throw new HttpError(
      'unprocessable',
      `${place}: ${indices.length} values, more than the limit of ${MAX_SPARSE_VALUES}`,
    );
  }
  indices.forEach((index, i) => {
    numberAt(index, `${place}.indices.${i}`);
    if (!Number.isInteger(index) || (index as number) > INT32_MAX || (index as number) < INT32_MIN)
      throw new HttpError('unprocessable', `${place}.indices.${i}: expected a signed 32-bit integer`);
  });
  const rounded = values.map((value, i) => {
    const float = Math.fround(numberAt(value, `${place}.values.${i}`));
    if (!(Math.abs(float) <= LARGEST_VALUE)) {
      throw new HttpError(
        'unprocessable',
        `${place}.values.${i}: expected a number of at most ${LARGEST_VALUE} in size`,
      );
    }
    return float;
  });
  return { indices: indices as readonly number[], values: rounded };
}

function numberAt(value: unknown, place: string): number {
  if (typeof value !== 'number') throw new HttpError('invalid_request', `${place}: expected a number`);
  return value;
}

/** Each index once, with the sum of its values: what the inner product needs. */
export function summed({ indices, values }: SparseVector): Map<number, number> {
  const sums = new Map<number, number>();
  indices.forEach((index, i) => {
    sums.set(index, (sums.get(index) ?? 0) + (values[i] as number));
  });
  return sums;
}
