import { types } from 'node:util';
import { backoffDelay, DEFAULT_BACKOFF } from './backoff.js';
/**
 * Runs `attempt` in the background, with growing pauses, until it succeeds once or the gateway stops. For what a
 * service must do before its first request (migrations, topology) while its backend may still be away.
 */
export function keepTrying(attempt, options) {
    const state = {
        done: false,
        error: undefined,
        stopped: false,
    };
    let wake;
    options.lifecycle.onStop(`${options.name} (start-up)`, () => {
        state.stopped = true;
        wake?.();
    });
    const success = new Promise((resolve) => {
        void (async () => {
            for (let tries = 0; !state.stopped; tries++) {
                try {
                    await attempt();
                    state.done = true;
                    state.error = undefined;
                    resolve();
                    return;
                }
                catch (error) {
                    state.error = types.isNativeError(error) ? error : new Error(String(error));
                    options.log.warn({ err: state.error, tries: tries + 1 }, `${options.name}: not ready, trying again`);
                }
                await new Promise((resume) => {
                    const timer = setTimeout(resume, backoffDelay(tries, options.backoff ?? DEFAULT_BACKOFF));
                    wake = () => {
                        clearTimeout(timer);
                        resume();
                    };
                });
            }
        })();
    });
    return {
        get done() {
            return state.done;
        },
        get error() {
            return state.error;
        },
        success,
    };
}
//# sourceMappingURL=keep-trying.js.map