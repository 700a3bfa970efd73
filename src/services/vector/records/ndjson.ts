import { HttpError } from '../../../http/errors.js';

/** Content type of JSON values in lines. */
export const NDJSON = 'application/x-ndjson';

const NAMES = /^\s*application\/(x-ndjson|ndjson|jsonl|x-jsonlines)\s*(;|$)/i;

/** Whether a Content-Type, or the first choice of an Accept, means lines of JSON. */
export function isNdjson(header: string | undefined): boolean {
  return header !== undefined && NAMES.test(header.split(',', 1)[0] as string);
}

export interface Line {
  /** From 1; empty lines count. */
  readonly number: number;
  /** Without its end. */
  readonly bytes: Buffer;
}

const LINE_FEED = 0x0a;

/**
 * The lines of a body that is longer than memory: at most one line is held.
 * @throws HttpError 413 for a line of more than `maxBytes`
 */
export async function* linesOf(body: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Line> {
  let number = 1;
  let held: Buffer[] = [];
  let size = 0;
  const add = (bytes: Buffer) => {
    size += bytes.length;
    if (size > maxBytes)
      throw new HttpError('payload_too_large', `longer than the limit of ${maxBytes} bytes for one line`);
    if (bytes.length > 0) held.push(bytes);
  };
  const take = (): Line => {
    const line = { number, bytes: held.length === 1 ? (held[0] as Buffer) : Buffer.concat(held, size) };
    number++;
    held = [];
    size = 0;
    return line;
  };
  for await (const chunk of body) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      add(chunk.subarray(start, end));
      start = end + 1;
      yield take();
    }
    add(chunk.subarray(start));
  }
  if (size > 0) yield take();
}
