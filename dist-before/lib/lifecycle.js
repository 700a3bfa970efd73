import { types } from 'node:util';
/** Releases run last-in first-out, each within its cap; a failed or late one is reported and does not stop the others. */
export class Lifecycle {
    log;
    registered = [];
    stopping;
    constructor(log) {
        this.log = log;
    }
    onStop(name, release, capMs = 5_000) {
        this.registered.push({ name, release, capMs });
    }
    /** Runs every release once, however often it is called. Resolves to the errors met. */
    stop() {
        this.stopping ??= this.releaseAll();
        return this.stopping;
    }
    async releaseAll() {
        const errors = [];
        for (let entry = this.registered.pop(); entry !== undefined; entry = this.registered.pop()) {
            const error = await settleWithin(entry);
            if (error === undefined)
                continue;
            errors.push(error);
            this.log.error({ err: error, release: entry.name }, 'release failed');
        }
        return errors;
    }
}
async function settleWithin({ name, release, capMs }) {
    let timer;
    const cap = new Promise((resolve) => {
        timer = setTimeout(resolve, capMs, new Error(`${name} did not end within ${capMs} ms`));
    });
    try {
        const settled = Promise.resolve()
            .then(release)
            .then(() => undefined);
        return await Promise.race([settled, cap]);
    }
    catch (error) {
        return types.isNativeError(error) ? error : new Error(String(error));
    }
    finally {
        clearTimeout(timer);
    }
}
//# sourceMappingURL=lifecycle.js.map