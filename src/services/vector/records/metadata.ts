import { HttpError } from '../../../http/errors.js';

/** Deeper metadata is refused: far below where the recursion of JavaScript's or Postgres' JSON parser ends. */
export const METADATA_DEPTH = 64;

// JSON.stringify writes U+0000 and lone surrogates as escapes; an even number of backslashes before one is text
const UNSTORABLE = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/;

/**
 * Metadata as JSON text that Postgres' jsonb takes.
 * @param place where it stands in the request, for the error
 * @throws HttpError 422 when it is too deep or too large, or holds what jsonb cannot: U+0000, half of a surrogate pair,
 *   a number beyond float64
 */
export function metadataText(
  metadata: Readonly<Record<string, unknown>>,
  maxBytes: number,
  place: string,
): string {
  checkValue(metadata, METADATA_DEPTH, place);
  const text = JSON.stringify(metadata);
  if (text.includes('\\u') && UNSTORABLE.test(text)) {
    throw new HttpError('unprocessable', `${place}: holds U+0000 or half of a surrogate pair`);
  }
  checkBytes(text, maxBytes, place);
  return text;
}

/** @throws HttpError 422 */
export function checkBytes(text: string, maxBytes: number, place: string): void {
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) {
    throw new HttpError('unprocessable', `${place}: ${bytes} bytes, more than the limit of ${maxBytes}`);
  }
}

function checkValue(value: unknown, depthLeft: number, place: string): void {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new HttpError('unprocessable', `${place}: holds a number beyond float64`);
  }
  if (typeof value !== 'object' || value === null) return;
  if (depthLeft === 0) {
    throw new HttpError('unprocessable', `${place}: nested deeper than ${METADATA_DEPTH} levels`);
  }
  for (const inner of Object.values(value)) checkValue(inner, depthLeft - 1, place);
}
