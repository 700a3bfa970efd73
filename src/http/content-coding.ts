import type { IncomingHttpHeaders } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib';
import { HttpError } from './errors.js';

/** `bytesWritten`: of the body, as far as it was read. */
type Decode = (
  body: Buffer,
  options: { maxOutputLength: number; info: true },
) => Promise<{ buffer: Buffer; engine: { bytesWritten: number } }>;

const DECODERS: Readonly<Record<string, Decode>> = {
  gzip: promisify(gunzip) as unknown as Decode,
  'x-gzip': promisify(gunzip) as unknown as Decode,
  deflate: promisify(inflate) as unknown as Decode,
  br: promisify(brotliDecompress) as unknown as Decode,
  zstd: promisify(zstdDecompress) as unknown as Decode,
};
const TAKEN = 'gzip, deflate, br, zstd';

/**
 * A body may unpack to so many times its size, and so much beside: JSON packs to a tenth. Without a bound a kilobyte would
 * take as much memory as the largest body.
 */
const FACTOR = 40;
const FREE_BYTES = 256 * 1024;

/**
 * What decodes the body of a request (RFC 9110, 8.4); `undefined` for one that is sent as it is.
 * @throws HttpError 415
 */
export function decoderFor(headers: IncomingHttpHeaders): Decode | undefined {
  const coding = headers['content-encoding']?.trim().toLowerCase();
  if (coding === undefined || coding === '' || coding === 'identity') return undefined;
  const decode = Object.hasOwn(DECODERS, coding) ? DECODERS[coding] : undefined;
  if (decode === undefined) throw unsupported();
  return decode;
}

/** @throws HttpError 415 for any coding: of a body that is read as it comes */
export function refuseCoding(headers: IncomingHttpHeaders): void {
  if (decoderFor(headers) !== undefined) throw unsupported();
}

/** @throws HttpError 400, 413 */
export async function decodedBody(body: Buffer, decode: Decode, limit: number): Promise<Buffer> {
  if (body.length === 0) return body;
  const maxOutputLength = Math.min(limit, FREE_BYTES + FACTOR * body.length);
  const wrong = (cause?: unknown) =>
    new HttpError('invalid_request', 'The body is not what its Content-Encoding says.', { cause });
  const { buffer, engine } = await decode(body, { maxOutputLength, info: true }).catch((cause) => {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') throw wrong(cause);
    const why = maxOutputLength < limit ? `${FACTOR} times its size` : `the limit of ${limit} bytes`;
    throw new HttpError('payload_too_large', `Decoded, the body is larger than ${why}.`, { cause });
  });
  // zlib ends with the first stream, and what stands behind it would be lost
  if (engine.bytesWritten !== body.length) throw wrong();
  return buffer;
}

function unsupported(): HttpError {
  return new HttpError(
    'unsupported_encoding',
    `The content coding is not one of ${TAKEN}, or not taken here.`,
    {
      headers: { 'Accept-Encoding': TAKEN },
    },
  );
}
