import { OutboundError } from '../../lib/outbound.js';
/** The attempt was cut short by this gateway's stop; the destination may or may not have got the message. */
export class InterruptedError extends Error {
    constructor() {
        super('the gateway is stopping');
        this.name = 'InterruptedError';
    }
}
/**
 * Delivers a message once.
 * @throws InterruptedError when `signal` aborts; whatever the destination does is a result
 */
export async function attemptDelivery(message, signal, { outbound, sign, timeoutMs, maxResponseBytes }) {
    try {
        const response = await outbound.send({
            url: new URL(message.url),
            method: message.method,
            headers: await deliveryHeaders(message, sign),
            body: message.body,
            timeoutMs: Math.min(timeoutMs, message.timeoutMs ?? timeoutMs),
            maxBodyBytes: maxResponseBytes,
            signal,
        });
        return { kind: 'response', status: response.status, headers: response.headers, body: response.body };
    }
    catch (error) {
        if (!(error instanceof OutboundError))
            throw error;
        if (error.reason === 'aborted')
            throw new InterruptedError();
        return { kind: 'failure', reason: error.message };
    }
}
/** The message's own headers, and those by which a receiver knows and verifies it; the latter cannot be overridden. */
async function deliveryHeaders(message, sign) {
    const { prefix } = message;
    return {
        'User-Agent': prefix === 'Upstash' ? 'Upstash-QStash' : 'Portico',
        ...message.headers,
        [`${prefix}-Message-Id`]: message.id,
        [`${prefix}-Retried`]: String(message.attempt),
        [`${prefix}-Signature`]: await sign(message.url, message.body),
    };
}
//# sourceMappingURL=attempt.js.map