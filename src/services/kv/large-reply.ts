import { isUtf8 } from 'node:buffer';
import type { Encoding } from './reply.js';

/** Bytes from which a value is worth a look instead of being made a string: that, its JSON and its bytes are three copies. */
export const LARGE = 16 * 1024;

const HEAD = Buffer.from('{"result":"');
const TAIL = Buffer.from('"}');
const QUOTE = 34;
const BACKSLASH = 92;
const BLANK = 32;

/**
 * The reply object of one large string as bytes: in base64, or the very bytes where JSON needs no escape in them;
 * `undefined` for other text.
 */
export function largeJson(value: Buffer, encoding: Encoding): Buffer | undefined {
  if (encoding === 'base64') return Buffer.from(`{"result":"${value.toString('base64')}"}`, 'latin1');
  if (!isPlain(value)) return undefined;
  return Buffer.concat([HEAD, value, TAIL]);
}

function isPlain(value: Buffer): boolean {
  if (value.includes(QUOTE) || value.includes(BACKSLASH) || !isUtf8(value)) return false;
  for (let i = 0; i < value.length; i++) {
    if ((value[i] as number) < BLANK) return false;
  }
  return true;
}
