import { types } from 'node:util';
import { encodeToken } from './message.js';
import { routeFor } from './topology.js';
/**
 * Why a token may not be in RabbitMQ. `outcome`: `refused` it certainly is not; `unknown` the connection was lost or no
 * confirm came in time.
 */
export class PublishError extends Error {
    outcome;
    constructor(outcome, message) {
        super(message);
        this.outcome = outcome;
        this.name = 'PublishError';
    }
}
/** Publishes tokens, persistent and mandatory, many in flight on one channel, each confirmed by RabbitMQ. */
export class TokenPublisher {
    link;
    names;
    mend;
    pending = new Map();
    returned = new Set();
    sequence = 0;
    constructor(link, names, 
    /** Declares the topology again: a queue of it is gone. */
    mend) {
        this.link = link;
        this.names = names;
        this.mend = mend;
    }
    /** Why nothing can be published now; `undefined` when it can. */
    get unavailable() {
        if (this.link.channel === undefined)
            return 'RabbitMQ is not connected';
        return this.link.blocked === undefined ? undefined : 'RabbitMQ takes no messages (resource alarm)';
    }
    /** To be called with each new channel. A message that reached no queue comes back before its confirm (seen with 3.10 and 4.0). */
    attach(channel) {
        channel.on('return', (message) => {
            this.returned.add(String(message.properties.messageId));
        });
    }
    /** To be called when the channel is lost: no confirm of it will come any more. */
    detach() {
        for (const { settle } of [...this.pending.values()])
            settle(new PublishError('unknown', 'the connection was lost'));
    }
    /**
     * Resolves when RabbitMQ has confirmed the token, which will be due after `delayMs`.
     * @throws PublishError
     */
    publish(token, delayMs, deadlineMs) {
        const { channel } = this.link;
        const { unavailable } = this;
        if (channel === undefined || unavailable !== undefined)
            return Promise.reject(new PublishError('refused', unavailable ?? 'not connected'));
        const id = String(++this.sequence);
        return new Promise((resolve, reject) => {
            const timer = setTimeout(() => settle(new PublishError('unknown', `no confirm within ${deadlineMs} ms`)), deadlineMs);
            const settle = (error) => {
                clearTimeout(timer);
                this.pending.delete(id);
                if (error === undefined)
                    resolve();
                else
                    reject(error);
            };
            this.pending.set(id, { settle });
            const { exchange, routingKey } = routeFor(this.names, delayMs);
            try {
                channel.publish(exchange, routingKey, encodeToken(token), { persistent: true, mandatory: true, messageId: id }, (error) => settle(this.judgeConfirm(id, error)));
            }
            catch (error) {
                settle(new PublishError('unknown', error.message));
            }
        });
    }
    judgeConfirm(id, error) {
        const wasReturned = this.returned.delete(id);
        if (error !== null && error !== undefined) {
            // amqplib reports a closed channel the same way as the broker's refusal
            const refused = types.isNativeError(error) && /nacked/i.test(error.message);
            return new PublishError(refused ? 'refused' : 'unknown', 'RabbitMQ did not confirm the message');
        }
        if (!wasReturned)
            return undefined;
        this.mend('a token had no queue to go to');
        return new PublishError('refused', 'no queue takes the message');
    }
}
//# sourceMappingURL=publisher.js.map