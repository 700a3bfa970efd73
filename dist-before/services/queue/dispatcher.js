import { setMaxListeners } from 'node:events';
import { backoffDelay } from '../../lib/backoff.js';
import { classifyDatabaseError } from '../../lib/postgres.js';
import { decodeToken } from './message.js';
/**
 * Takes tokens from the work queue and has them processed, a bounded number at once. A token is acknowledged when
 * processing resolves and goes back to RabbitMQ when it rejects. While the store is away it takes none.
 */
export class Dispatcher {
    options;
    channel;
    consumerTag;
    inFlight = new Set();
    aborter = new AbortController();
    stopping = false;
    storeDown = false;
    endPause;
    constructor(options) {
        this.options = options;
        // every attempt in flight listens
        setMaxListeners(0, this.aborter.signal);
    }
    /** To be called with each new channel, after the topology was declared. */
    async attach(channel) {
        const { names, concurrency, mend } = this.options;
        await channel.prefetch(concurrency);
        await channel.consume(names.unrouted, (message) => {
            // the sweeper gives such a token's message another one
            if (message !== null)
                settle(channel, message, true);
            mend(message === null ? 'the queue of unrouted tokens was deleted' : 'a token had no queue to go to');
        });
        this.channel = channel;
        if (!this.storeDown)
            await this.consume(channel);
    }
    /** To be called when the channel is lost. What is in flight ends; its tokens come again and are found out of date. */
    detach() {
        this.channel = undefined;
        this.consumerTag = undefined;
    }
    /** Takes no more tokens, lets attempts end for `graceMs`, interrupts the rest, whose tokens go back. */
    async stop(graceMs) {
        this.stopping = true;
        this.endPause?.();
        await this.cancel();
        const interrupt = setTimeout(() => this.aborter.abort(), graceMs);
        while (this.inFlight.size > 0)
            await Promise.allSettled(this.inFlight);
        clearTimeout(interrupt);
    }
    async consume(channel) {
        if (this.stopping)
            return;
        const { consumerTag } = await channel.consume(this.options.names.work, (message) => {
            if (message === null)
                this.options.mend('the work queue was deleted');
            else
                this.take(channel, message);
        });
        if (this.channel === channel)
            this.consumerTag = consumerTag;
    }
    async cancel() {
        const { channel, consumerTag } = this;
        if (channel === undefined || consumerTag === undefined)
            return;
        this.consumerTag = undefined;
        // fails only with the channel, and then there is no consumer either
        await channel.cancel(consumerTag).catch(() => undefined);
    }
    take(channel, message) {
        if (this.stopping || this.storeDown) {
            settle(channel, message, false);
            return;
        }
        const token = decodeToken(message.content);
        if (token === undefined) {
            this.options.log.error({ bytes: message.content.length }, 'queue: something else than a token was in the work queue');
            settle(channel, message, true);
            return;
        }
        const work = this.process(channel, message, token).finally(() => this.inFlight.delete(work));
        this.inFlight.add(work);
    }
    async process(channel, message, token) {
        try {
            await this.options.process(token, this.aborter.signal);
            settle(channel, message, true);
        }
        catch (err) {
            if (!this.stopping) {
                this.options.log.warn({ err, id: token.id }, 'queue: a token goes back');
                await this.pauseUntilStoreIsBack(classifyDatabaseError(err).kind);
            }
            settle(channel, message, false);
        }
    }
    /** Otherwise a token that cannot be claimed would come again at once, and again. */
    async pauseUntilStoreIsBack(kind) {
        if (this.storeDown)
            return;
        this.storeDown = true;
        await this.cancel();
        this.options.log.warn({ kind }, 'queue: no deliveries until the database answers');
        void this.resumeWhenStoreIsBack();
    }
    async resumeWhenStoreIsBack() {
        for (let failures = 0; !this.stopping; failures++) {
            await this.pause(backoffDelay(failures));
            try {
                await this.options.checkStore();
                this.storeDown = false;
                if (this.channel !== undefined)
                    await this.consume(this.channel);
                this.options.log.info('queue: deliveries go on');
                return;
            }
            catch (err) {
                this.options.log.debug({ err }, 'queue: the database is still away');
            }
        }
    }
    pause(ms) {
        return new Promise((resolve) => {
            const timer = setTimeout(resolve, ms);
            this.endPause = () => {
                clearTimeout(timer);
                resolve();
            };
        });
    }
}
/** On a channel that is gone there is nothing to settle: RabbitMQ has the token back already, and amqplib would throw. */
function settle(channel, message, served) {
    try {
        if (served)
            channel.ack(message);
        else
            channel.nack(message, false, true);
    }
    catch (error) {
        if (error.name !== 'IllegalOperationError')
            throw error;
    }
}
//# sourceMappingURL=dispatcher.js.map