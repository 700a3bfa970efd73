import { RespError, RespStatus, type RespValue } from '../resp/resp-decoder.js';

/** How strings of a reply are written: as text, or as base64 of their bytes. */
export type Encoding = 'utf8' | 'base64';

/** A reply as the contract's object: `{"result":...}`, or `{"error":"..."}` for an error. */
export function replyJson(reply: RespValue, encoding: Encoding): string {
  if (reply instanceof RespError) return errorJson(reply.text);
  return `{"result":${resultJson(reply, encoding)}}`;
}

export function errorJson(text: string): string {
  // a script may answer an error without text, which some clients would take for success
  return `{"error":${JSON.stringify(text === '' ? 'ERR' : text)}}`;
}

/**
 * JSON text of a reply: integers with all their digits, strings by `encoding`. In base64 every string is encoded
 * but an `OK` that is the whole reply: clients decode all others, one inside an array included.
 */
function resultJson(value: RespValue, encoding: Encoding): string {
  if (encoding === 'base64') {
    if (value instanceof Buffer && isOk(value)) return '"OK"';
    if (value instanceof RespStatus && isOk(value.bytes)) return '"OK"';
  }
  return valueJson(value, encoding);
}

function valueJson(value: RespValue, encoding: Encoding): string {
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'string') return value;
  if (value instanceof Buffer) return stringJson(value, encoding);
  if (value instanceof RespStatus) return stringJson(value.bytes, encoding);
  // a script may put an error into an array; there it is one more string
  if (value instanceof RespError) return stringJson(Buffer.from(value.text), encoding);
  let text = '[';
  for (let i = 0; i < value.length; i++) {
    if (i > 0) text += ',';
    text += valueJson(value[i] as RespValue, encoding);
  }
  return `${text}]`;
}

function stringJson(bytes: Buffer, encoding: Encoding): string {
  // invalid UTF-8 becomes U+FFFD here; base64 needs no escapes
  return encoding === 'utf8' ? JSON.stringify(bytes.toString('utf8')) : `"${bytes.toString('base64')}"`;
}

function isOk(value: Buffer): boolean {
  return value.length === 2 && value[0] === 79 && value[1] === 75;
}
