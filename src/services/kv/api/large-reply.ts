import { isUtf8 } from 'node:buffer';
import { isPlainText } from './plain-text.js';
import type { Encoding } from './reply.js';

/** Bytes from which a value is worth a look instead of being made a string: that, its JSON and its bytes are three copies. */
export const LARGE = 16 * 1024;

const HEAD = Buffer.from('{"result":"');
const TAIL = Buffer.from('"}');
const QUOTE = 34;
/** Bytes that are encoded at a time; a multiple of 3, so that only the last piece is padded. */
const PIECE = 48 * 1024;

/**
 * The reply object of one large string as bytes: in base64, or the very bytes where JSON needs no escape in them;
 * `undefined` for other text.
 */
export function largeJson(value: Buffer, encoding: Encoding): Buffer | undefined {
  if (encoding === 'base64') return base64Json(value);
  if (value.includes(QUOTE) || !isUtf8(value) || !isPlainText(value)) return undefined;
  return Buffer.concat([HEAD, value, TAIL]);
}

/** By pieces: base64 of a whole megabyte as a string is copied twice more, and is garbage that costs as much again. */
function base64Json(value: Buffer): Buffer {
  const length = Math.ceil(value.length / 3) * 4;
  const json = Buffer.allocUnsafe(HEAD.length + length + TAIL.length);
  json.set(HEAD);
  let at = HEAD.length;
  for (let from = 0; from < value.length; from += PIECE)
    at += json.write(value.toString('base64', from, from + PIECE), at, 'latin1');
  json.set(TAIL, at);
  return json;
}
