import { ReplyTooLarge, RespError, type RespValue } from '../resp/resp-decoder.js';

/**
 * What became of a transaction.
 * @param replies of MULTI, of each row (`QUEUED` or why it cannot be), of EXEC
 * @returns one result a row, or the error of a transaction that was discarded
 */
export function transactionResults(replies: readonly RespValue[]): RespValue[] | RespError {
  const results = replies.at(-1);
  if (Array.isArray(results)) return results;
  // it was executed: that is told at every row, not by the one error of a transaction that was discarded
  if (results instanceof ReplyTooLarge) return replies.slice(1, -1).map(() => results);
  // EXEC itself only says that there were errors; the first row's is the useful one
  const error = replies.find((reply) => reply instanceof RespError);
  return error instanceof RespError ? error : new RespError('EXECABORT Transaction discarded');
}
