import { responseOf } from '../message/callbacks.js';
import type { Conclusion } from '../message/conclusion.js';
import { canonicalHeaders } from '../message/message.js';

/** HTTP's status for a body that is larger than somebody takes. */
const TOO_LARGE = 413;

/**
 * The body that brings a third party's answer to the workflow. A bad answer that may still be followed by a better one is
 * ignored by the SDKs, which tell it by `retried` below `maxRetries`; this one is the last, whatever was left.
 */
export function callAnswer({ message, result }: Conclusion, maxResponse: number): Buffer {
  const isCut = result.kind === 'response' && result.isCut === true;
  const { status, headers, body } = isCut
    ? {
        status: TOO_LARGE,
        headers: {},
        body: Buffer.from(
          `The response is larger than the limit of ${maxResponse} bytes (workflow.maxCallResponse).`,
        ),
      }
    : responseOf(result);
  const isGood = status >= 200 && status < 300;
  return Buffer.from(
    JSON.stringify({
      status,
      header: canonicalHeaders(headers),
      body: body.toString('base64'),
      retried: isGood ? message.attempt : message.maxRetries,
      maxRetries: message.maxRetries,
      sourceMessageId: message.id,
      url: message.url,
      method: message.method,
      createdAt: message.createdAt,
    }),
  );
}
