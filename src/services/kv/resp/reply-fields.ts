import { RespStatus, type RespValue } from './resp-decoder.js';

/** The items of an array reply; none of another. */
export function items(value: RespValue | undefined): readonly RespValue[] {
  return Array.isArray(value) ? value : [];
}

/** A string or status reply as text, an integer as its digits; empty for another. */
export function text(value: RespValue | undefined): string {
  if (value instanceof RespStatus) return value.bytes.toString('latin1');
  if (typeof value === 'string') return value;
  return value instanceof Buffer ? value.toString('latin1') : '';
}

/** A map reply, which RESP2 sends as names and values in turns. */
export function fields(value: RespValue | undefined): ReadonlyMap<string, RespValue> {
  const flat = items(value);
  const map = new Map<string, RespValue>();
  for (let i = 0; i + 1 < flat.length; i += 2) map.set(text(flat[i]), flat[i + 1]);
  return map;
}
