import { RespError, RespStatus, type RespValue } from './resp-decoder.js';

const CRLF = Buffer.from('\r\n');
const NIL = Buffer.from('$-1\r\n');
const NIL_ARRAY = Buffer.from('*-1\r\n');

/** Replies as the RESP2 bytes that Redis sent for them, one after the other. */
export function respBytes(replies: readonly RespValue[]): Buffer {
  const pieces: Buffer[] = [];
  for (const reply of replies) append(pieces, reply);
  return Buffer.concat(pieces);
}

function append(pieces: Buffer[], value: RespValue): void {
  if (value === null) pieces.push(NIL);
  else if (value === undefined) pieces.push(NIL_ARRAY);
  else if (typeof value === 'string') pieces.push(Buffer.from(`:${value}\r\n`));
  else if (value instanceof RespError) pieces.push(Buffer.from(`-${value.text}\r\n`));
  else if (value instanceof RespStatus) pieces.push(Buffer.from('+'), value.bytes, CRLF);
  else if (Array.isArray(value)) {
    pieces.push(Buffer.from(`*${value.length}\r\n`));
    for (const item of value) append(pieces, item);
  } else pieces.push(Buffer.from(`$${value.length}\r\n`), value, CRLF);
}
