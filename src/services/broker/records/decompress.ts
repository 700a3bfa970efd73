import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import { HttpError } from '../../../http/errors.js';
import { Mutex } from '../../../lib/mutex.js';
import { sliced } from '../../../lib/slices.js';
import { TooManyBytes } from './byte-sink.js';
import { lz4Frame } from './lz4.js';
import { snappy } from './snappy.js';

/** What is unpacked beside other batches, in bytes: larger ones take turns, so that many at a time cost the memory of one. */
const SMALL = 4 * 1024 * 1024;

const gunzip = promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.gunzip);
const { zstdDecompress } = zlib as unknown as { zstdDecompress?: typeof zlib.gunzip };
const unzstd =
  zstdDecompress === undefined
    ? undefined
    : promisify<Buffer, zlib.ZlibOptions, Buffer>(zstdDecompress as typeof zlib.gunzip);

const LARGE_CHUNK = 1024 * 1024;

const GZIP = 1;
const SNAPPY = 2;
const LZ4 = 3;
const ZSTD = 4;

const NEVER = new AbortController().signal;

/** What unpacking batches may cost. */
export class Unpacking {
  private readonly mutex = new Mutex();

  /** @param largestBatch bytes that one batch may have: a crafted one of some kilobytes would fill the memory */
  constructor(private readonly largestBatch: number) {}

  /**
   * The records of a batch by Kafka's number of their codec.
   * @param about which they are, for the error @throws HttpError 502 when they cannot be read
   */
  async unpack(codec: number, packed: Buffer, about: string): Promise<Buffer> {
    try {
      return await decompress(codec, packed, Math.min(SMALL, this.largestBatch));
    } catch (error) {
      if (!isTooLarge(error)) throw unreadable(about, error);
    }
    const release = await this.mutex.acquire(NEVER);
    try {
      return await decompress(codec, packed, this.largestBatch);
    } catch (error) {
      throw isTooLarge(error) ? tooLarge(about, this.largestBatch) : unreadable(about, error);
    } finally {
      release?.();
    }
  }
}

async function decompress(codec: number, packed: Buffer, limit: number): Promise<Buffer> {
  if (codec === GZIP) return gunzip(packed, optionsFor(limit));
  // these two are JavaScript: a batch of many small pieces takes a second
  if (codec === SNAPPY) return sliced(snappy(packed, limit));
  if (codec === LZ4) return sliced(lz4Frame(packed, limit));
  if (codec === ZSTD && unzstd !== undefined) return unzstd(packed, optionsFor(limit));
  throw new HttpError(
    'backend_error',
    codec === ZSTD
      ? 'The records are compressed with zstd, which needs Node 22.15 or newer.'
      : `The records are compressed with an unknown codec (${codec}).`,
  );
}

function optionsFor(maxOutputLength: number): zlib.ZlibOptions {
  // of many small buffers the system gets nothing back for long
  return maxOutputLength > SMALL ? { maxOutputLength, chunkSize: LARGE_CHUNK } : { maxOutputLength };
}

function isTooLarge(error: unknown): boolean {
  return error instanceof TooManyBytes || (error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE';
}

/** Without the cause: zlib's error holds all that was unpacked. */
function tooLarge(about: string, limit: number): HttpError {
  const text = `Compressed records have more than ${limit} bytes when they are unpacked (${about}; broker.clusters[].unpackedBytes).`;
  return new HttpError('backend_error', text);
}

function unreadable(about: string, cause: unknown): HttpError {
  if (cause instanceof HttpError) return cause;
  const text = `Compressed records cannot be unpacked (${about}).`;
  return new HttpError('backend_error', text, { cause });
}
