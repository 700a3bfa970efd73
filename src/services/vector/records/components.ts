import { endianness } from 'node:os';
import { HttpError } from '../../../http/errors.js';
import { type Components, LiftedVector } from '../schemas/lifted-vector.js';

const IS_LITTLE_ENDIAN = endianness() === 'LE';

/** Largest finite float32. */
const FLOAT32_MAX = 3.4028234663852886e38;
/** Smallest float32 with full precision: a squared length below it has lost digits, or is 0. */
const FLOAT32_MIN_NORMAL = 1.1754943508222875e-38;

/** What an index asks of the vectors that it stores or is asked for. */
export interface ComponentRules {
  readonly dimension: number;
  /** Refuses vectors without a direction, as COSINE has to. */
  readonly needsLength: boolean;
  /** Largest size of a component; float32's largest by default. */
  readonly largestComponent?: number | undefined;
  /** Components up to this size are stored as 0, so they give a vector no length. */
  readonly vanishingComponent?: number | undefined;
}

/** Bytes of one vector in pgvector's binary format: two 16-bit words and float32 components. */
export function packedSize(dimension: number): number {
  return 4 + 4 * dimension;
}

/**
 * Checks `components` and writes them at `offset` in the binary format of pgvector's type `vector`: uint16 dimension,
 * uint16 0, float32 components, all big-endian (pgvector, `vector_recv`).
 *
 * The squared length must be a float32 number, because pgvector sums in float32: beyond, scores would be infinite or NaN.
 * @param place where the vector stands in the request, such as `body.3.vector`, for the error
 * @throws HttpError 422 for a wrong dimension and for values that float32 cannot hold, 400 for what is no number
 */
export function packVector(
  target: Buffer,
  offset: number,
  components: Components,
  rules: ComponentRules,
  place: string,
): void {
  if (components.length !== rules.dimension) {
    throw new HttpError(
      'unprocessable',
      `Invalid vector dimension: ${components.length}, expected: ${rules.dimension}`,
    );
  }
  target.writeUInt16BE(rules.dimension, offset);
  target.writeUInt16BE(0, offset + 2);
  const squaredLength =
    components instanceof LiftedVector
      ? packLifted(target, offset + 4, components, rules, place)
      : packNumbers(target, offset + 4, components, rules, place);
  checkLength(squaredLength, rules, place);
}

/** @returns the squared length */
function packNumbers(
  target: Buffer,
  offset: number,
  components: readonly unknown[],
  rules: ComponentRules,
  place: string,
): number {
  const largest = rules.largestComponent ?? FLOAT32_MAX;
  const vanishing = rules.vanishingComponent ?? 0;
  let squaredLength = 0;
  let at = offset;
  for (let i = 0; i < components.length; i++) {
    const value = components[i];
    if (typeof value !== 'number') throw notANumber(value, `${place}.${i}`);
    const rounded = Math.fround(value);
    const size = Math.abs(rounded);
    if (!(size <= largest)) throw tooLarge(largest, `${place}.${i}`);
    if (size > vanishing) squaredLength += rounded * rounded;
    target.writeFloatBE(rounded, at);
    at += 4;
  }
  return squaredLength;
}

/** The same for components that are float32 already: they are copied at once and their bytes turned round. */
function packLifted(
  target: Buffer,
  offset: number,
  lifted: LiftedVector,
  rules: ComponentRules,
  place: string,
): number {
  const largest = rules.largestComponent ?? FLOAT32_MAX;
  const vanishing = rules.vanishingComponent ?? 0;
  const { components } = lifted;
  let squaredLength = 0;
  for (let i = 0; i < components.length; i++) {
    const value = components[i] as number;
    const size = Math.abs(value);
    if (!(size <= largest)) throw tooLarge(largest, `${place}.${i}`);
    if (size > vanishing) squaredLength += value * value;
  }
  const packed = target.subarray(offset, offset + 4 * components.length);
  packed.set(new Uint8Array(components.buffer, components.byteOffset, components.byteLength));
  if (IS_LITTLE_ENDIAN) packed.swap32();
  return squaredLength;
}

function tooLarge(largest: number, place: string): HttpError {
  return new HttpError('unprocessable', `${place}: expected a number of at most ${largest} in size`);
}

function checkLength(squaredLength: number, rules: ComponentRules, place: string): void {
  if (squaredLength > FLOAT32_MAX) {
    throw new HttpError(
      'unprocessable',
      `${place}: the vector is too long, its squared length exceeds float32`,
    );
  }
  if (rules.needsLength && squaredLength < FLOAT32_MIN_NORMAL) {
    throw new HttpError(
      'unprocessable',
      `${place}: a vector of length 0 has no direction, so COSINE cannot compare it`,
    );
  }
}

function notANumber(value: unknown, place: string): HttpError {
  const given = value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value;
  return new HttpError('invalid_request', `${place}: expected a number, got ${given}`);
}

/** One vector in binary, for a parameter of type `vector`. */
export function packOne(components: Components, rules: ComponentRules, place: string): Buffer {
  const packed = Buffer.allocUnsafe(packedSize(rules.dimension));
  packVector(packed, 0, components, rules, place);
  return packed;
}

/**
 * Header of a one-dimensional array in Postgres' binary format, before elements that each carry their size.
 * @param elementType oid of the element's type
 */
export function writeArrayHeader(target: Buffer, elementType: number, length: number): number {
  target.writeInt32BE(1, 0); // dimensions of the array
  target.writeInt32BE(0, 4); // no nulls
  target.writeUInt32BE(elementType, 8);
  target.writeInt32BE(length, 12);
  target.writeInt32BE(1, 16); // lower bound
  return 20;
}

/** Checks every vector and packs them into one parameter of type `vector[]`. */
export function packMany(
  vectors: readonly Components[],
  rules: ComponentRules,
  vectorType: number,
  place: (i: number) => string,
): Buffer {
  const size = packedSize(rules.dimension);
  const packed = Buffer.allocUnsafe(20 + vectors.length * (4 + size));
  let offset = writeArrayHeader(packed, vectorType, vectors.length);
  vectors.forEach((components, i) => {
    packed.writeInt32BE(size, offset);
    packVector(packed, offset + 4, components, rules, place(i));
    offset += 4 + size;
  });
  return packed;
}
