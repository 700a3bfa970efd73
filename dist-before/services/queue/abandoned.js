const EVERY_MS = 1_000;
/** More are not remembered: during a long outage nothing of them can have been written anyway. */
const MOST = 10_000;
/**
 * Messages that were refused to their senders although Postgres may have them: a stalled one may commit an insert when
 * it goes on. They are cancelled as soon as it answers.
 */
export class Abandoned {
    options;
    until = new Map();
    timer;
    constructor(options) {
        this.options = options;
    }
    add(id) {
        if (this.until.size >= MOST)
            return;
        this.until.set(id, performance.now() + this.options.forMs);
        this.timer ??= setInterval(() => void this.cancelAll(), EVERY_MS);
    }
    stop() {
        clearInterval(this.timer);
        this.until.clear();
    }
    async cancelAll() {
        const now = performance.now();
        for (const [id, until] of this.until) {
            if (until < now)
                this.until.delete(id);
        }
        if (this.until.size === 0) {
            clearInterval(this.timer);
            this.timer = undefined;
            return;
        }
        try {
            for (const id of await this.options.cancel([...this.until.keys()]))
                this.until.delete(id);
        }
        catch (err) {
            this.options.log.debug({ err, messages: this.until.size }, 'queue: refused messages are not cancelled yet');
        }
    }
}
//# sourceMappingURL=abandoned.js.map