import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import { jsonError, parseJson, parseJsonBody } from '../../../http/body.js';
import { HttpError } from '../../../http/errors.js';
import { JsonProblem } from '../../../lib/json/json-bounds.js';
import { stringEnd } from '../../../lib/json/json-string.js';
import { parseInPieces, WHOLE_BYTES } from '../../../lib/json/sliced-json.js';
import { inSlices, wholly } from '../../../lib/slices.js';
import { LiftedVector } from '../schemas/lifted-vector.js';
import { MAX_RECORDS } from '../schemas/records.js';
import { FloatScanner } from './float-scanner.js';

const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];
const KEY = Buffer.from('"vector"');

/** Stands in the rest for a vector; nobody outside can know it. */
const MARK = `${randomUUID()} `;

/** Bytes between two places to rest: 0.1 ms of anything but vectors, which are one step each. */
const STEP = 64 * 1024;
/** Bytes of a string, or of blanks before a vector, that are looked at in one go. */
const NEAR = 1_024;

interface Lifted {
  readonly vectors: readonly LiftedVector[];
  /** The JSON with a mark for each of them. */
  readonly rest: Buffer;
}

/**
 * The body as a JSON value in which each record's `vector` is a `LiftedVector`, where it holds numbers only. JSON.parse takes
 * three times as long for 1,000 vectors of 384 dimensions and as much memory again as the body; their bytes are read as float32
 * at once instead. Everything else is JSON.parse's.
 * @returns a promise for a large body only, which is read in slices
 * @throws HttpError `invalid_json`
 */
export function parseWithVectors(body: Buffer): unknown {
  if (body.length > WHOLE_BYTES) return parseLarge(body);
  const { vectors, rest } = wholly(liftVectors(body));
  if (vectors.length === 0) return parseJson(body);
  let value: unknown;
  try {
    if (!isUtf8(rest)) throw new SyntaxError('not UTF-8');
    value = JSON.parse(rest.toString('utf8'));
  } catch {
    // says where in the body it is wrong
    return parseJson(body);
  }
  putAllBack(value, vectors);
  return value;
}

async function parseLarge(body: Buffer): Promise<unknown> {
  const { vectors, rest } = await inSlices(liftVectors(body));
  let value: unknown;
  try {
    value = await inSlices(parseInPieces(rest));
  } catch (error) {
    // says where in the body it is wrong
    if (vectors.length > 0 && isSyntax(error)) return parseJsonBody(body);
    throw jsonError(error);
  }
  putAllBack(value, vectors);
  return value;
}

function isSyntax(error: unknown): boolean {
  return error instanceof JsonProblem && error.at !== undefined;
}

function putAllBack(value: unknown, vectors: readonly LiftedVector[]): void {
  for (const record of Array.isArray(value) ? value : [value]) putBack(record, vectors);
}

function putBack(record: unknown, vectors: readonly LiftedVector[]): void {
  if (typeof record !== 'object' || record === null) return;
  const holder = record as { vector?: unknown };
  if (typeof holder.vector !== 'string' || !holder.vector.startsWith(MARK)) return;
  holder.vector = vectors[Number(holder.vector.slice(MARK.length))];
}

/** Takes out the arrays of numbers that stand behind the key `vector` of the outermost object, or of objects in the outermost array. */
function* liftVectors(body: Buffer): Generator<void, Lifted> {
  const scanner = new FloatScanner(body);
  const vectors: LiftedVector[] = [];
  const kept: Buffer[] = [];
  let keptTo = 0;
  let depth = 0;
  let recordDepth = 0;
  let rest = STEP;
  for (let i = 0; i < body.length; i++) {
    if (i >= rest) {
      yield;
      rest = i + STEP;
    }
    const c = body[i] as number;
    if (c === QUOTE) {
      const near = nearEnd(body, i);
      const end = near ?? (yield* stringEnd(body, i + 1)) + 1;
      const array = depth === recordDepth && isKey(body, i, end) ? arrayAfter(body, end) : -1;
      const before = scanner.count;
      if (array >= 0 && scanner.array(array)) {
        if (vectors.length === MAX_RECORDS) throw tooMany();
        kept.push(body.subarray(keptTo, array), Buffer.from(`"${MARK}${vectors.length}"`));
        vectors.push(new LiftedVector(scanner.store, before, scanner.count - before));
        keptTo = scanner.at;
        i = scanner.at - 1;
      } else i = end - 1;
    } else if (c === OPEN_ARRAY || c === OPEN_OBJECT) {
      depth++;
      if (recordDepth === 0) recordDepth = c === OPEN_ARRAY ? 2 : 1;
    } else if (c === CLOSE_ARRAY || c === CLOSE_OBJECT) depth--;
  }
  kept.push(body.subarray(keptTo));
  return { vectors, rest: Buffer.concat(kept) };
}

function tooMany(): HttpError {
  return new HttpError('invalid_request', `body: expected at most ${MAX_RECORDS} records`);
}

/** Behind the closing quote of the string that begins at `start`, where that is near: most strings are short. */
function nearEnd(body: Buffer, start: number): number | undefined {
  const near = Math.min(body.length, start + NEAR);
  for (let i = start + 1; i < near; i++) {
    if (body[i] === BACKSLASH) i++;
    else if (body[i] === QUOTE) return i + 1;
  }
  return undefined;
}

function isKey(body: Buffer, start: number, end: number): boolean {
  return end - start === KEY.length && body.compare(KEY, 0, KEY.length, start, end) === 0;
}

/** Place of the `[` that follows a key, or -1. */
function arrayAfter(body: Buffer, end: number): number {
  const colon = skipBlanks(body, end);
  if (body[colon] !== COLON) return -1;
  const value = skipBlanks(body, colon + 1);
  return body[value] === OPEN_ARRAY ? value : -1;
}

/** Past more than is usual it does not look. */
function skipBlanks(body: Buffer, start: number): number {
  const end = start + NEAR;
  let i = start;
  while (i < end && (body[i] === 0x20 || body[i] === 0x0a || body[i] === 0x0d || body[i] === 0x09)) i++;
  return i;
}
