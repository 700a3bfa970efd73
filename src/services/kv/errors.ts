import { z } from 'zod';
import { HttpError } from '../../http/errors.js';
import type { ErrorFormat } from '../../http/route.js';

/** A message that already starts with Redis' class word, such as `ERR` or `NOPERM`. */
const CLASS_WORD = /^[A-Z][A-Z0-9]+ /;

/** The contract's error body: one field, class word first. */
export const errorSchema = z.object({
  error: z.string().describe('Class word (ERR, NOPERM, WRONGPASS ...) and explanation.'),
});

export const formatError: ErrorFormat = (error: HttpError) => ({ error: errorText(error) });

/** The text of an error reply, class word first. */
export function errorText(error: HttpError): string {
  switch (error.code) {
    case 'unauthorized':
      return 'WRONGPASS invalid or missing auth token';
    case 'payload_too_large':
      return error.message.startsWith('max request size')
        ? `ERR ${error.message}`
        : `ERR max request size exceeded. ${error.message}`;
    case 'timeout':
      return 'ERR Redis did not answer in time: whether the command ran is unknown';
    default:
      return CLASS_WORD.test(error.message) ? error.message : `ERR ${error.message}`;
  }
}

/** Whether it is the login that keeps a connection from being opened. */
export function isLoginRefused(failure: Error | undefined): boolean {
  return failure !== undefined && /^(WRONGPASS|NOAUTH) /.test(failure.message);
}

/** Nothing was sent to Redis: the request may be repeated. */
export function notConnected(cause?: unknown): HttpError {
  return new HttpError('backend_unavailable', 'Redis is not available; nothing was executed', { cause });
}

/** The connection broke between the command and its reply. Not 503, whose Retry-After would invite to repeat it. */
export function outcomeUnknown(cause?: unknown): HttpError {
  return new HttpError(
    'outcome_unknown',
    'The connection to Redis broke before its reply: whether the command ran is unknown',
    { cause },
  );
}

/** A token has as many requests waiting for their turn as it may. */
export function tooManyWait(): HttpError {
  return new HttpError(
    'overloaded',
    'Too many large requests of this token wait for Redis; nothing was executed',
  );
}

/** Others' large requests kept Redis busy for too long. */
export function waitedTooLong(): HttpError {
  return new HttpError(
    'overloaded',
    'Redis was busy with other large requests for too long; nothing was executed',
  );
}

/** Redis reads more slowly than requests come: what waits to be sent would grow without end. */
export function tooMuchUnsent(): HttpError {
  return new HttpError('overloaded', 'Too much waits to be sent to Redis; nothing was executed');
}

const AMBIGUOUS: ReadonlySet<HttpError['code']> = new Set([
  ...(['backend_error', 'outcome_unknown', 'timeout', 'client_gone', 'internal'] as const),
]);

/** Whether what failed so was not executed: what is refused is refused as a whole, and 503 says so. */
export function changedNothing({ code }: HttpError): boolean {
  return !AMBIGUOUS.has(code);
}
