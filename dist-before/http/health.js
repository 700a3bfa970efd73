import { HttpError } from './errors.js';
/** A check is not repeated sooner than this, in ms, however often it is asked for. */
const CACHE_MS = 1_000;
/** A backend that has not answered by then counts as down, in ms. */
const CHECK_MS = 1_500;
/** How often backends are asked while the gateway starts, in ms. */
const START_POLL_MS = 50;
/** Asks backends whether they answer; concurrent and frequent callers share one check. */
export class Health {
    targets;
    now;
    cache = new Map();
    constructor(targets, now = () => performance.now()) {
        this.targets = targets;
        this.now = now;
    }
    states(service) {
        const wanted = service === undefined ? this.targets : this.targets.filter((t) => t.service === service);
        return Promise.all(wanted.map((target) => this.state(target)));
    }
    /** Resolves when every backend answers, or after `capMs`. */
    async whenUp(capMs) {
        const end = this.now() + capMs;
        for (;;) {
            const states = await Promise.all(this.targets.map(check));
            if (states.every(({ up }) => up) || this.now() >= end)
                return;
            await new Promise((resolve) => setTimeout(resolve, START_POLL_MS));
        }
    }
    state(target) {
        const cached = this.cache.get(target);
        if (cached !== undefined && this.now() - cached.at < CACHE_MS)
            return cached.state;
        const state = check(target);
        this.cache.set(target, { at: this.now(), state });
        return state;
    }
}
async function check({ service, instance, backend }) {
    const about = { service, instance, backend: backend.name };
    const signal = AbortSignal.timeout(CHECK_MS);
    const late = new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new HttpError('timeout', `no answer within ${CHECK_MS} ms`)));
    });
    try {
        await Promise.race([backend.check(signal), late]);
        return { ...about, up: true };
    }
    catch (error) {
        return { ...about, up: false, reason: shortReason(error) };
    }
}
/** One line for `/readyz`: an HttpError's own words or a system error's code, never free text of a driver. */
function shortReason(error) {
    if (error instanceof HttpError)
        return error.message;
    const code = error?.code;
    return typeof code === 'string' ? `does not answer (${code})` : 'does not answer';
}
//# sourceMappingURL=health.js.map