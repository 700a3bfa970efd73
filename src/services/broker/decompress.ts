import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import { HttpError } from '../../http/errors.js';
import { lz4Frame } from './lz4.js';
import { snappy } from './snappy.js';

/** Most bytes that one batch may have unpacked: Kafka's largest is far below, a crafted one must not fill the memory. */
export const LARGEST_BATCH = 256 * 1024 * 1024;

const gunzip = promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.gunzip);
const { zstdDecompress } = zlib as unknown as { zstdDecompress?: typeof zlib.gunzip };
const unzstd =
  zstdDecompress === undefined
    ? undefined
    : promisify<Buffer, zlib.ZlibOptions, Buffer>(zstdDecompress as typeof zlib.gunzip);

const GZIP = 1;
const SNAPPY = 2;
const LZ4 = 3;
const ZSTD = 4;

/** The records of a batch by Kafka's number of their codec. @throws HttpError 502 when they cannot be read */
export async function decompress(codec: number, packed: Buffer): Promise<Buffer> {
  try {
    if (codec === GZIP) return await gunzip(packed, { maxOutputLength: LARGEST_BATCH });
    if (codec === SNAPPY) return snappy(packed, LARGEST_BATCH);
    if (codec === LZ4) return lz4Frame(packed, LARGEST_BATCH);
    if (codec === ZSTD && unzstd !== undefined)
      return await unzstd(packed, { maxOutputLength: LARGEST_BATCH });
  } catch (cause) {
    throw new HttpError('backend_error', 'Compressed records cannot be unpacked.', { cause });
  }
  throw new HttpError(
    'backend_error',
    codec === ZSTD
      ? 'The records are compressed with zstd, which needs Node 22.15 or newer.'
      : `The records are compressed with an unknown codec (${codec}).`,
  );
}
