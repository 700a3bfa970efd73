import { HttpError } from '../../http/errors.js';
import { classifyDatabaseError, isPassing } from '../../lib/postgres.js';

/** The contract's error body. */
export function formatError(error: HttpError): { error: string; status: number } {
  // clients of this contract look for these words
  const text = error.code === 'unauthorized' ? 'Unauthorized: Invalid auth token' : error.message;
  return { error: text, status: error.status };
}

// appendix A of Postgres' manual: data exceptions, and limits of the program exceeded
const CLIENTS_FAULT = /^(22|54)/;
// unique_violation
const ALREADY_THERE = '23505';

/** Whatever a statement threw, as what the client is told; Postgres' own words stay in the cause. */
export function translateError(cause: unknown): HttpError {
  if (cause instanceof HttpError) return cause;
  const { kind, sqlState } = classifyDatabaseError(cause);
  if (kind === 'timeout') return new HttpError('timeout', 'Postgres did not answer in time.', { cause });
  if (kind === 'unavailable')
    return new HttpError('backend_unavailable', 'Postgres is not available.', { cause });
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
