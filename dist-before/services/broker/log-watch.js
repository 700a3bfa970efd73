import { fetchOnce } from './log-reader.js';
import { pause } from './waits.js';
/**
 * How long one question to a broker waits, in ms: so much later at most does it notice a watcher that came meanwhile.
 */
const SLICE_MS = 100;
/** A watch that fails (broker away, leader moved) tells its watchers to look for themselves after so long, in ms. */
const PAUSE_MS = 200;
/**
 * Waits for records at the end of logs, for all callers together: one request a broker at a time, because a broker
 * answers one after the other on a connection and a hundred empty waits of a second would take a hundred seconds.
 */
export class LogWatch {
    cluster;
    watchers = new Map();
    constructor(cluster) {
        this.cluster = cluster;
    }
    /** Resolves when there may be something at one of `positions`, which `node` leads, or `signal` aborts. */
    watch(node, positions, signal) {
        return new Promise((resolve) => {
            const mine = [];
            const wake = () => {
                signal.removeEventListener('abort', wake);
                for (const watcher of mine)
                    all.delete(watcher);
                resolve();
            };
            let all = this.watchers.get(node);
            const isIdle = all === undefined;
            if (isIdle) {
                all = new Set();
                this.watchers.set(node, all);
            }
            for (const position of positions)
                mine.push({ position, wake });
            for (const watcher of mine)
                all.add(watcher);
            if (signal.aborted)
                return wake();
            signal.addEventListener('abort', wake);
            if (isIdle)
                void this.run(node, all);
        });
    }
    async run(node, watchers) {
        while (watchers.size > 0) {
            const asked = earliestByPartition(watchers);
            try {
                const options = { node, lane: 'poll', maxWaitMs: SLICE_MS, maxBytes: 1 };
                const replies = await fetchOnce(this.cluster, [...asked.values()], options);
                for (const [position, reply] of replies)
                    wakeThose(watchers, position, reply);
            }
            catch {
                await pause(PAUSE_MS);
                for (const { wake } of [...watchers])
                    wake();
            }
        }
        this.watchers.delete(node);
    }
}
/** A request may name a partition once: the least offset that somebody waits at. */
function earliestByPartition(watchers) {
    const earliest = new Map();
    for (const { position } of watchers) {
        const key = `${position.partition} ${position.topic}`;
        const other = earliest.get(key);
        if (other === undefined || position.offset < other.offset)
            earliest.set(key, position);
    }
    return earliest;
}
function wakeThose(watchers, asked, reply) {
    for (const { position, wake } of [...watchers]) {
        if (position.topic !== asked.topic || position.partition !== asked.partition)
            continue;
        if (reply.errorCode !== 0 || Number(reply.lastStableOffset) > position.offset)
            wake();
    }
}
//# sourceMappingURL=log-watch.js.map