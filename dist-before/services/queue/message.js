import { randomBytes } from 'node:crypto';
export const DESTINATION_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
/** `msg_` and 33 characters of which the first 9 grow with time, so that new rows lie together in the index. */
export function newMessageId(now) {
    return `msg_${now.toString(36).padStart(9, '0')}${randomBytes(12).toString('hex')}`;
}
/** `<ms>-<number>`, the form that dead-letter ids have in the public SDKs' documents. */
export function newDeadLetterId(now) {
    return `${now}-${randomBytes(4).readUInt32BE()}`;
}
export function encodeToken({ id, attempt }) {
    return Buffer.from(JSON.stringify({ id, attempt }));
}
/** `undefined` for anything that is no token. */
export function decodeToken(content) {
    try {
        const value = JSON.parse(content.toString('utf8'));
        if (typeof value?.id !== 'string' || !Number.isSafeInteger(value.attempt))
            return undefined;
        return { id: value.id, attempt: value.attempt };
    }
    catch {
        return undefined;
    }
}
/** `my-header` as `My-Header`. */
export function canonicalHeaderName(name) {
    return name
        .toLowerCase()
        .replace(/(^|-)([a-z])/g, (_, dash, letter) => dash + letter.toUpperCase());
}
//# sourceMappingURL=message.js.map