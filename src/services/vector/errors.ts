import { z } from 'zod';
import { HttpError } from '../../http/errors.js';
import { NoSlot } from '../../lib/fair-slots.js';
import { classifyDatabaseError, isPassing } from '../../lib/postgres/postgres.js';

/** The body of every error of this contract. */
export const errorSchema = z.object({ error: z.string(), status: z.int() });

export function formatError(error: HttpError): z.input<typeof errorSchema> {
  // clients of this contract look for these words
  const text = error.code === 'unauthorized' ? 'Unauthorized: Invalid auth token' : error.message;
  return { error: text, status: error.status };
}

// appendix A of Postgres' manual: data exceptions, and limits of the program exceeded
const CLIENTS_FAULT = /^(22|54)/;
// class of insufficient resources
const NO_ROOM = /^53/;
// unique_violation
const ALREADY_THERE = '23505';

const BUSY = {
  late: "This token's share of the connections to Postgres (vector.database.poolSize) was busy for too long.",
  full: 'Too many requests of this token wait for its share of the connections to Postgres (vector.database.poolSize).',
} as const;

/** Whatever a statement threw, as what the client is told; Postgres' own words stay in the cause. */
export function translateError(cause: unknown): HttpError {
  if (cause instanceof HttpError) return cause;
  if (cause instanceof NoSlot) return new HttpError('overloaded', BUSY[cause.reason], { cause });
  const { kind, sqlState } = classifyDatabaseError(cause);
  if (kind === 'timeout') {
    const text =
      sqlState === undefined
        ? 'Postgres did not answer in time.'
        : 'The statement took too long and was cancelled.';
    return new HttpError('timeout', text, { cause });
  }
  if (kind === 'unavailable') {
    const text = NO_ROOM.test(sqlState ?? '')
      ? 'Postgres is short of connections, memory or disk space.'
      : 'Postgres is not available.';
    return new HttpError('backend_unavailable', text, { cause });
  }
  if (sqlState === undefined) return new HttpError('internal', undefined, { cause });
  if (CLIENTS_FAULT.test(sqlState)) {
    return new HttpError('unprocessable', `Postgres cannot store or compare this (${sqlState}).`, { cause });
  }
  if (sqlState === ALREADY_THERE)
    return new HttpError('conflict', 'Somebody else made the same at the same time.', { cause });
  if (isPassing(sqlState)) {
    return new HttpError('backend_unavailable', 'Postgres cannot do this now.', { cause });
  }
  return new HttpError('backend_error', 'Postgres refused the statement.', { cause });
}

/** @throws HttpError whatever `work` throws, translated */
export async function translated<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw translateError(error);
  }
}

/**
 * Whether a call that failed so may be made again with its key. Writes of vectors set what they are given: made twice they come
 * to the same, so that what may or may not have been written is no reason against it.
 */
export function changedNothing(_error: HttpError): boolean {
  return true;
}
