import { HttpError } from '../../../http/errors.js';
import { contractHeaderReader } from '../../../http/headers.js';
import type { RawReply, RawRequest } from '../../../http/route.js';
import { inSlices } from '../../../lib/slices.js';
import { headerAlias } from '../card.js';
import { isPassing } from '../resp/passing.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import { respBytes } from '../resp/resp-reply.js';
import { isLarge, LARGE, largeJson, listPieces, replyPieces } from './large-json.js';
import { type Encoding, replyJson } from './reply.js';

/** How a request wants its answer: JSON with strings in one of two encodings, or the bytes of RESP2. */
export type AnswerFormat = Encoding | 'resp2';

export type Answer = Pick<RawReply, 'status' | 'body' | 'contentType' | 'headers'>;

const encodingHeader = contractHeaderReader(headerAlias, 'encoding');
const formatHeader = contractHeaderReader(headerAlias, 'response-format');

/** @throws HttpError `invalid_request` for a format that does not exist, or base64 of RESP2 */
export function formatOf({ headers }: RawRequest): AnswerFormat {
  const wantsBase64 = encodingHeader(headers)?.toLowerCase() === 'base64';
  const format = formatHeader(headers)?.toLowerCase();
  if (format === undefined || format === 'json') return wantsBase64 ? 'base64' : 'utf8';
  if (format !== 'resp2')
    throw new HttpError('invalid_request', 'ERR unknown response format: expected json or resp2');
  if (wantsBase64) throw new HttpError('invalid_request', 'ERR the response format resp2 has no base64');
  return 'resp2';
}

/** The answer to a single command. @param isPassingError whether it may be sent again as it is, which 503 says */
export function singleAnswer(
  reply: RespValue,
  format: AnswerFormat,
  isPassingError: (error: RespError) => boolean = isPassing,
): Answer | Promise<Answer> {
  const status = reply instanceof RespError ? (isPassingError(reply) ? 503 : 400) : 200;
  const headers = status === 503 ? { 'Retry-After': '1' } : {};
  if (format === 'resp2') return { status, ...octets([reply]), headers };
  const large = reply instanceof Buffer && reply.length >= LARGE ? largeJson(reply, format) : undefined;
  if (large === undefined && isLarge(reply)) return largeAnswer(replyPieces(reply, format), status);
  return { status, body: large ?? replyJson(reply, format), headers };
}

/** One entry a command, errors at their position. */
export function listAnswer(replies: RespValue[], format: AnswerFormat): Answer | Promise<Answer> {
  if (format === 'resp2') return { status: 200, ...octets(replies) };
  if (isLarge(replies)) return largeAnswer(listPieces(replies, format), 200);
  let text = '[';
  for (let i = 0; i < replies.length; i++) {
    if (i > 0) text += ',';
    text += replyJson(replies[i], format);
  }
  return { status: 200, body: `${text}]` };
}

async function largeAnswer(pieces: Generator<void, Buffer>, status: number): Promise<Answer> {
  return { status, body: await inSlices(pieces), headers: {} };
}

function octets(replies: readonly RespValue[]): Pick<RawReply, 'body' | 'contentType'> {
  return { body: respBytes(replies), contentType: 'application/octet-stream' };
}
