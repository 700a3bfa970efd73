/** Resolves when `work` has ended, well or badly, at the latest after `ms`. */
export async function endedWithin(ms, work) {
    let timer;
    const late = new Promise((resolve) => {
        timer = setTimeout(resolve, ms);
    });
    await Promise.race([work.catch(() => { }), late]);
    clearTimeout(timer);
}
/** Resolves when `work` has, or when `signal` aborts. @throws what `work` rejects with before that */
export async function untilAborted(work, signal) {
    if (signal.aborted)
        return;
    let stop = () => { };
    const aborted = new Promise((resolve) => {
        stop = resolve;
        signal.addEventListener('abort', stop, { once: true });
    });
    try {
        await Promise.race([work, aborted]);
    }
    finally {
        signal.removeEventListener('abort', stop);
    }
}
export function pause(ms) {
    return new Promise((resolve) => setTimeout(resolve, ms));
}
//# sourceMappingURL=waits.js.map