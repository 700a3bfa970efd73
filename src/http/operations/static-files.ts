import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { FileReply } from '../exchange/exchange.js';

/** A file that is sent as it is, packed once for all who ask for it. */
export interface StaticFile {
  readonly contentType: string;
  readonly etag: string;
  /** By content coding; the best one first. */
  readonly codings: readonly (readonly [name: string, body: Buffer])[];
}

const packBrotli = promisify(brotliCompress);
const packGzip = promisify(gzip);

/** Half a second for 3 MB, on another thread; the best quality takes ten times as long for 5 % less. */
const BROTLI_QUALITY = 8;

/** Packs a file, away from the event loop. */
export async function staticFile(contentType: string, content: string | Buffer): Promise<StaticFile> {
  const body = Buffer.from(content);
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
    [constants.BROTLI_PARAM_SIZE_HINT]: body.length,
  };
  const [brotli, gzipped] = await Promise.all([packBrotli(body, { params }), packGzip(body, { level: 9 })]);
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  return {
    contentType,
    etag,
    codings: [
      ['br', brotli],
      ['gzip', gzipped],
      ['identity', body],
    ],
  };
}

/** The file as a request wants it: packed where it says so, and 304 where it has it already. */
export function staticReply(file: StaticFile, { headers }: Pick<IncomingMessage, 'headers'>): FileReply {
  const accepted = acceptedCodings(headers['accept-encoding'] as string | undefined);
  const [coding, body] = file.codings.find(([name]) => accepted(name)) ?? (file.codings.at(-1) as never);
  // RFC 9110, 8.8.3: another coding is another representation
  const etag = coding === 'identity' ? file.etag : file.etag.replace(/"$/, `-${coding}"`);
  const shared = { ETag: etag, Vary: 'Accept-Encoding', 'Cache-Control': 'no-cache' };
  const { contentType } = file;
  if (names(headers['if-none-match'], etag))
    return { status: 304, body: Buffer.alloc(0), contentType, headers: shared };
  const packed = coding === 'identity' ? {} : { 'Content-Encoding': coding };
  return { status: 200, body, contentType, headers: { ...shared, ...packed } };
}

/** By RFC 9110, 12.5.3: `q=0` is a no; nothing said means that nothing is packed, which every client can read. */
function acceptedCodings(header: string | undefined): (coding: string) => boolean {
  const wanted = new Map<string, boolean>();
  for (const item of (header ?? '').split(',', 20)) {
    const [name = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase());
    if (name !== '') wanted.set(name, !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter)));
  }
  return (coding) => wanted.get(coding) ?? wanted.get('*') ?? coding === 'identity';
}

function names(ifNoneMatch: string | undefined, etag: string): boolean {
  const known = ifNoneMatch?.split(',', 50).map((each) => each.trim().replace(/^W\//, '')) ?? [];
  return known.includes(etag) || known.includes('*');
}
