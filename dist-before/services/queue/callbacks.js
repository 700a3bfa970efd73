import { canonicalHeaderName, newMessageId, } from './message.js';
/**
 * The messages that an attempt's outcome brings about: the callback after every attempt (the last one has a 2xx status
 * or `retried == maxRetries`), the failure callback once the message is dead.
 * @param dlqId id of the dead letter; given when `decision` is `dead`
 * @param now Unix time in ms
 */
export function callbackMessages(message, result, decision, dlqId, now) {
    const messages = [];
    if (message.callback !== null)
        messages.push(callbackMessage(message, message.callback, callbackBody(message, result), now));
    if (decision.kind === 'dead' && message.failureCallback !== null)
        messages.push(callbackMessage(message, message.failureCallback, callbackBody(message, result, dlqId), now));
    return messages;
}
export function callbackBody(message, result, dlqId) {
    const { status, headers, body } = responseOf(result);
    return {
        status,
        header: Object.fromEntries(Object.entries(headers).map(([name, values]) => [canonicalHeaderName(name), values])),
        body: body.toString('base64'),
        retried: message.attempt,
        maxRetries: message.maxRetries,
        ...(dlqId === undefined ? {} : { dlqId }),
        sourceMessasgeId: message.id,
        sourceMessageId: message.id,
        url: message.url,
        method: message.method,
        sourceHeader: Object.fromEntries(Object.entries(message.headers).map(([name, value]) => [name, [value]])),
        sourceBody: message.body.toString('base64'),
        notBefore: String(message.notBefore),
        createdAt: String(message.createdAt),
    };
}
/** A failure without a response, told as one: status 0, no headers, the reason as body. */
export function responseOf(result) {
    return result.kind === 'response' ? result : { status: 0, headers: {}, body: Buffer.from(result.reason) };
}
function callbackMessage(source, target, body, now) {
    return {
        id: newMessageId(now),
        prefix: source.prefix,
        url: target.url,
        method: target.method,
        headers: target.headers,
        body: Buffer.from(JSON.stringify(body)),
        maxRetries: target.maxRetries,
        timeoutMs: target.timeoutMs,
        delayMs: target.delayMs,
        notBefore: now + target.delayMs,
        createdAt: now,
        callback: null,
        failureCallback: null,
    };
}
//# sourceMappingURL=callbacks.js.map