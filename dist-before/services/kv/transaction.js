import { errorJson, replyJson } from './reply.js';
import { RespError } from './resp-decoder.js';
import { encodeCommands } from './resp-encoder.js';
/** Replies beside those of the rows: of MULTI and of EXEC. */
export const TRANSACTION_FRAME = 2;
/** MULTI, the rows and EXEC as one contiguous payload: nothing of another request can come between. */
export function transactionPayload(rows) {
    return encodeCommands([['MULTI'], ...rows, ['EXEC']]);
}
/**
 * The answer to a transaction.
 * @param replies of MULTI, of each row (`QUEUED` or why it cannot be), of EXEC
 * @returns status and body: one entry a row, or a single error when the whole was discarded
 */
export function transactionReply(replies, encoding) {
    const results = replies.at(-1);
    if (Array.isArray(results))
        return { status: 200, body: `[${results.map((result) => replyJson(result, encoding)).join(',')}]` };
    // EXEC itself only says that there were errors; the first row's is the useful one
    const error = replies.find((reply) => reply instanceof RespError);
    return {
        status: 400,
        body: errorJson(error?.text ?? 'EXECABORT Transaction discarded'),
    };
}
//# sourceMappingURL=transaction.js.map