import { HttpError } from '../../http/errors.js';
import { unavailable } from './errors.js';
/** Longest wait for RabbitMQ's confirm, in ms: with the two statements around it the sender has an answer within 2 s. */
const CONFIRM_MS = 1_300;
/**
 * Stores a message and hands it to RabbitMQ. Resolves when the row is committed and the token confirmed.
 * @throws HttpError 503 when that cannot be had; the message is then cancelled, and the sender may publish it again
 */
export async function acceptMessage(message, tools) {
    const { store, publisher, abandoned } = tools;
    const reason = publisher.unavailable;
    if (reason !== undefined)
        throw new HttpError('backend_unavailable', `${reason}.`);
    try {
        await store.insert(message);
    }
    catch (error) {
        abandoned.add(message.id);
        throw unavailable(error);
    }
    try {
        await publisher.publish({ id: message.id, attempt: 0 }, message.delayMs, CONFIRM_MS);
    }
    catch (cause) {
        if (await isBeingDelivered(message.id, tools))
            return;
        throw new HttpError('backend_unavailable', 'RabbitMQ did not take the message.', { cause });
    }
}
/** A token without confirm may have arrived all the same, and then the message is accepted: better than delivered and refused. */
async function isBeingDelivered(id, { store, abandoned }) {
    try {
        return (await store.cancel([id])).length === 0;
    }
    catch {
        abandoned.add(id);
        return false;
    }
}
//# sourceMappingURL=accept.js.map