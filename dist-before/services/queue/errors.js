import { z } from 'zod';
import { HttpError } from '../../http/errors.js';
import { classifyDatabaseError } from '../../lib/postgres.js';
export const errorSchema = z.object({
    error: z.string().describe('What is wrong, in one sentence; the SDKs show it as it is.'),
});
/** The queue's error shape: `{"error": "..."}`. */
export const formatError = (error) => ({ error: error.message });
/** What Postgres' failure means to a sender. */
export function unavailable(error) {
    if (error instanceof HttpError)
        return error;
    const { kind } = classifyDatabaseError(error);
    if (kind === 'unavailable' || kind === 'timeout')
        return new HttpError('backend_unavailable', 'The database of the queue is not available.', {
            cause: error,
        });
    return new HttpError('internal', undefined, { cause: error });
}
//# sourceMappingURL=errors.js.map