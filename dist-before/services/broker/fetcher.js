import { HttpError } from '../../http/errors.js';
import { kafkaRefusal, translateError } from './errors.js';
import { fetchOnce, readReply } from './log-reader.js';
import { LogWatch } from './log-watch.js';
import { pause } from './waits.js';
/** Least pause between two looks at the same partitions, in ms: a gap in a compacted log must not become a busy loop. */
const LEAST_PAUSE_MS = 20;
/** Looks at a partition whose leader is not where it was said to be, before that is an error. */
const LEADER_TRIES = 3;
/** Reads logs at given offsets, without a consumer group. */
export class Fetcher {
    cluster;
    maxBytes;
    watch;
    constructor(cluster, maxBytes) {
        this.cluster = cluster;
        this.maxBytes = maxBytes;
        this.watch = new LogWatch(cluster);
    }
    /**
     * Returns as soon as there is a record at one of `positions`, and with nothing when `timeoutMs` have passed.
     * @throws HttpError when a topic or partition does not exist, or none of `positions` can be read
     */
    async fetch(positions, timeoutMs, signal) {
        await this.checkPartitions(positions);
        const deadline = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
        const distinct = new Map(positions.map((p) => [`${p.offset} ${p.partition} ${p.topic}`, p]));
        let wanted = [...distinct.values()];
        for (let leaderMisses = 0;;) {
            const results = await this.look(wanted);
            const messages = wanted.flatMap((position) => results.get(position)?.messages ?? []);
            const failures = wanted.flatMap((position) => failureOf(position, results.get(position)));
            const stale = failures.some(({ isStale }) => isStale);
            if (messages.length > 0)
                return { messages, errors: failures };
            if (failures.length > 0 && (!stale || ++leaderMisses >= LEADER_TRIES)) {
                throw (failures.find(({ isStale }) => !isStale) ?? failures[0]).error;
            }
            if (deadline.aborted)
                return { messages: [], errors: [] };
            if (stale)
                await this.cluster.refresh([...new Set(wanted.map(({ topic }) => topic))]);
            wanted = wanted.map((position) => movedTo(position, results.get(position)));
            await Promise.all([this.waitForMore(wanted, deadline), pause(LEAST_PAUSE_MS)]);
        }
    }
    async checkPartitions(positions) {
        const names = [...new Set(positions.map(({ topic }) => topic))];
        let topics = await this.cluster.existing(names);
        if (positions.some((position) => isBeyond(position, topics)))
            topics = await this.cluster.refresh(names);
        const unknown = positions.find((position) => isBeyond(position, topics));
        if (unknown === undefined)
            return;
        const { topic, partition } = unknown;
        const count = topics.get(topic)?.partitions.length;
        if (count === undefined)
            throw new HttpError('not_found', `There is no topic ${topic}.`);
        throw new HttpError('invalid_request', `Topic ${topic} has the partitions 0 to ${count - 1}, not ${partition}.`);
    }
    /** Reads what is there now, at all brokers at once, each for its share of the bytes. */
    async look(positions) {
        const results = new Map();
        const requests = await this.requestsFor(positions, results);
        const maxBytes = Math.max(1, Math.floor(this.maxBytes / Math.max(1, requests.length)));
        await Promise.all(requests.map(async ({ node, positions: asked }) => {
            const options = { node, lane: 'fetch', maxWaitMs: 0, maxBytes };
            const replies = await fetchOnce(this.cluster, asked, options).catch((error) => {
                throw translateError(error);
            });
            for (const position of asked)
                results.set(position, readReply(position, replies.get(position)));
        }));
        return results;
    }
    /** Positions by leader; the same partition at two offsets needs two requests. */
    async requestsFor(positions, results) {
        const topics = await this.cluster.topics(positions.map(({ topic }) => topic));
        const requests = [];
        for (const position of positions) {
            const node = leaderOf(position, topics);
            if (node < 0) {
                const error = kafkaRefusal('LEADER_NOT_AVAILABLE', `topic ${position.topic}, partition ${position.partition}`);
                results.set(position, { messages: [], bytes: 0, next: position.offset, error, isStale: true });
                continue;
            }
            const key = `${position.partition} ${position.topic}`;
            let request = requests.find((one) => one.node === node && !one.partitions.has(key));
            if (request === undefined) {
                request = { node, positions: [], partitions: new Set() };
                requests.push(request);
            }
            request.positions.push(position);
            request.partitions.add(key);
        }
        return requests;
    }
    async waitForMore(positions, deadline) {
        const topics = await this.cluster.topics(positions.map(({ topic }) => topic));
        const byNode = new Map();
        for (const position of positions) {
            const node = leaderOf(position, topics);
            if (node >= 0)
                byNode.set(node, [...(byNode.get(node) ?? []), position]);
        }
        if (byNode.size === 0)
            return pause(LEAST_PAUSE_MS);
        const done = new AbortController();
        const first = AbortSignal.any([deadline, done.signal]);
        await Promise.race([...byNode].map(([node, watched]) => this.watch.watch(node, watched, first)));
        done.abort();
    }
}
function leaderOf({ topic, partition }, topics) {
    return topics.get(topic)?.partitions[partition]?.leader ?? -1;
}
function isBeyond({ topic, partition }, topics) {
    return partition >= (topics.get(topic)?.partitions.length ?? 0);
}
function failureOf(position, result) {
    return result?.error === undefined ? [] : [{ ...position, error: result.error, isStale: result.isStale }];
}
function movedTo(position, result) {
    return result === undefined ? position : { ...position, offset: result.next };
}
//# sourceMappingURL=fetcher.js.map