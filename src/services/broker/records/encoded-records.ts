import { HttpError } from '../../../http/errors.js';
import type { RecordInput } from '../schemas.js';

/** Records, headers and 64 KiB of their text between two places to rest: about 1 ms. */
const STEP = 500;
const BYTES = 64 * 1024;

/**
 * Records whose keys, values and values of headers were sent as base64, with their bytes.
 * @throws HttpError 400 for text that is no base64
 */
export function* decodedRecords<R extends RecordInput>(records: readonly R[]): Generator<void, R[]> {
  const decoded: R[] = [];
  let work = 0;
  for (const [i, record] of records.entries()) {
    const { key, value, headers } = record;
    decoded.push({
      ...record,
      key: key && bytesOf(key, i, 'key'),
      value: value && bytesOf(value, i, 'value'),
      headers: headers?.map((header) => ({ ...header, value: bytesOf(header.value, i, 'a header') })),
    });
    work +=
      1 + (headers?.length ?? 0) + Math.floor(((key?.length ?? 0) + (value?.length ?? 0)) / BYTES) * STEP;
    if (work < STEP) continue;
    work = 0;
    yield;
  }
  return decoded;
}

function bytesOf(text: string | Buffer, index: number, what: string): Buffer {
  const base64 = String(text);
  const bytes = Buffer.from(base64, 'base64');
  // what is none is passed over by Node
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  if (base64.length % 4 !== 0 || bytes.length !== (base64.length / 4) * 3 - padding)
    throw new HttpError('invalid_request', `Record ${index}: ${what} is not base64 (Broker-Encoding).`);
  return bytes;
}
