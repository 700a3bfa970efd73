/** Messages looked at in one sweep; while the work queue is longer than this, what is overdue only waits its turn. */
const SWEEP_LIMIT = 500;
const PURGE_LIMIT = 1_000;
const CONFIRM_MS = 10_000;
/** Finds messages whose token RabbitMQ has lost (or never got) and gives them a new one; removes old ended messages. */
export class Sweeper {
    options;
    timer;
    running;
    constructor(options) {
        this.options = options;
        this.timer = setInterval(() => {
            this.running ??= this.run().finally(() => {
                this.running = undefined;
            });
        }, options.intervalMs);
    }
    async stop() {
        clearInterval(this.timer);
        await this.running;
    }
    async run() {
        const { store, ages, log } = this.options;
        try {
            await this.sweep();
            await store.purge(ages, PURGE_LIMIT);
        }
        catch (err) {
            log.warn({ err }, 'queue: the sweep failed');
        }
    }
    async sweep() {
        const { store, publisher, backlog, log } = this.options;
        const waiting = await backlog();
        if (waiting === undefined || waiting > SWEEP_LIMIT || publisher.unavailable !== undefined)
            return;
        const lost = await store.sweep(SWEEP_LIMIT);
        if (lost.length === 0)
            return;
        log.info({ messages: lost.length }, 'queue: overdue messages get a new token');
        await Promise.all(lost.map((token) => publisher.publish(token, 0, CONFIRM_MS)));
    }
}
//# sourceMappingURL=sweeper.js.map