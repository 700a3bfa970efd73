import { z } from 'zod';
import { HttpError } from '../../http/errors.js';
import type { ErrorFormat } from '../../http/route.js';
import { NoSlot } from '../../lib/fair-slots.js';
import { classifyDatabaseError, isMissingTable, isPassing, isPoolBusy } from '../../lib/postgres/postgres.js';

export const errorSchema = z.object({
  error: z.string().describe('What is wrong, in one sentence; the SDKs show it as it is.'),
});

/** The queue's error shape: `{"error": "..."}`. */
export const formatError: ErrorFormat = (error): z.output<typeof errorSchema> => ({ error: error.message });

/** SQLSTATE of a text that Postgres cannot hold: one with a NUL character. */
const NO_TEXT = '22021';

/** Postgres refused the statement for what is in it. */
export function isRefusal(error: unknown): boolean {
  return classifyDatabaseError(error).kind === 'statement';
}

/** The statement took longer than one may. */
export function isTimeout(error: unknown): boolean {
  return classifyDatabaseError(error).kind === 'timeout';
}

/** Postgres refused the statement, or there was too much in it for the time that one has. */
export function isTooMuch(error: unknown): boolean {
  return isRefusal(error) || isTimeout(error);
}

const TOO_SLOW = 'The database of the queue took too long for this request. Try again.';
const TOO_BUSY =
  'All connections to the database of the queue were busy (queue.poolSize); nothing was done. Try again.';

const MANY_LISTINGS = 'Too many listings are being read at the same time. Try again.';

const NO_TABLES = 'The tables of the queue are missing in its database; they are being made again.';

/** What Postgres' failure means to a sender. */
export function unavailable(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  if (error instanceof NoSlot) return new HttpError('overloaded', MANY_LISTINGS, { cause: error });
  const { kind, sqlState } = classifyDatabaseError(error);
  if (sqlState === NO_TEXT)
    return new HttpError('invalid_request', 'A NUL character cannot stand in an id, a name or a filter.', {
      cause: error,
    });
  if (kind === 'timeout') return new HttpError('backend_unavailable', TOO_SLOW, { cause: error });
  if (isPoolBusy(error)) return new HttpError('backend_unavailable', TOO_BUSY, { cause: error });
  if (isMissingTable(error)) return new HttpError('backend_unavailable', NO_TABLES, { cause: error });
  if (kind === 'unavailable' || isPassing(sqlState ?? ''))
    return new HttpError('backend_unavailable', 'The database of the queue is not available.', {
      cause: error,
    });
  return new HttpError('internal', undefined, { cause: error });
}
