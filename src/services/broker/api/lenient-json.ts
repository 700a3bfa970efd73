import { parseJson, parseJsonBody } from '../../../http/body.js';
import { WHOLE_BYTES } from '../../../lib/json/sliced-json.js';
import { inSlices, wholly } from '../../../lib/slices.js';

const [BLANK, QUOTE, COMMA, COLON, BACKSLASH] = [' ', '"', ',', ':', '\\'].map((one) => one.charCodeAt(0));
const OPENING = [...'[{'].map((one) => one.charCodeAt(0));
const CLOSING = [...']}'].map((one) => one.charCodeAt(0));

/** Bytes that are looked at in one go: 1 ms. */
const STEP = 64 * 1024;

/**
 * A body as a JSON value, also where a comma follows the last element of an array or object, as in examples of the hosted
 * service; `undefined` when it is empty or blank.
 * @returns a promise for a large body, which is read in slices
 * @throws HttpError `invalid_json` for anything else
 */
export function parseLeniently(body: Buffer): unknown {
  if (body.length > WHOLE_BYTES) return parseLarge(body);
  try {
    return parseJson(body);
  } catch (error) {
    const repaired = wholly(withoutTrailingCommas(body));
    if (repaired === undefined) throw error;
    return parseJson(repaired);
  }
}

async function parseLarge(body: Buffer): Promise<unknown> {
  try {
    return await parseJsonBody(body);
  } catch (error) {
    const repaired = await inSlices(withoutTrailingCommas(body));
    if (repaired === undefined) throw error;
    return parseJsonBody(repaired);
  }
}

/** A copy with blanks in their place; `undefined` where there are none. */
function* withoutTrailingCommas(body: Buffer): Generator<void, Buffer | undefined> {
  let copy: Buffer | undefined;
  let isInString = false;
  /** The last byte that is no blank, and the one before it; where the last one stands. */
  let [last, beforeLast, at] = [COMMA, COMMA, 0];
  for (let i = 0; i < body.length; i++) {
    const byte = body[i] as number;
    if (i % STEP === STEP - 1) yield;
    if (isInString) {
      if (byte === BACKSLASH) i++;
      else if (byte === QUOTE) isInString = false;
      continue;
    }
    if (isBlank(byte)) continue;
    if (byte === QUOTE) isInString = true;
    if (last === COMMA && CLOSING.includes(byte) && endsAnElement(beforeLast)) {
      copy ??= Buffer.from(body);
      copy[at] = BLANK as number;
    }
    [last, beforeLast, at] = [byte, last, i];
  }
  return copy;
}

function endsAnElement(byte: number | undefined): boolean {
  return byte !== COMMA && byte !== COLON && !OPENING.includes(byte as number);
}

/** JSON's: space, tab, line feed, carriage return. */
function isBlank(byte: number): boolean {
  return byte === BLANK || (byte >= 9 && byte <= 13);
}
