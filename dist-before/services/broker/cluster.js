import { HttpError } from '../../http/errors.js';
import { kafkaLogCreator } from './client.js';
import { unavailable } from './errors.js';
import { KafkaConnection, KafkaTimeout } from './kafkajs-internals.js';
import { topicsOf } from './topics.js';
/** Connect and first exchange get so long each, in ms: a request must know within 2 s that Kafka is away. */
const CONNECT_MS = 800;
/** A question about topics is answered from memory by a broker that is well. In ms. */
const METADATA_MS = 1_500;
/** What is known of a topic is asked again when older, in ms; a partition that moved or grew is noticed by error before. */
const TOPIC_AGE_MS = 30_000;
/** The brokers, the connections to them and what they know of topics. Connects on first use and again after a loss. */
export class Cluster {
    options;
    seeds;
    nodes = new Map();
    connections = new Map();
    known = new Map();
    wanted = new Set();
    refreshing;
    everything;
    closed = false;
    constructor(options) {
        this.options = options;
        this.seeds = options.brokers.map(parseAddress);
        options.lifecycle.onStop('kafka connections', () => this.close());
    }
    /** Topics by name, without those that do not exist. @param fresh ask Kafka even when all are known */
    async topics(names, fresh = false) {
        const found = new Map();
        const oldest = this.options.now() - TOPIC_AGE_MS;
        for (const name of names) {
            const known = this.known.get(name);
            if (known !== undefined && known.at > oldest)
                found.set(name, known.topic);
        }
        if (!fresh && found.size === new Set(names).size)
            return found;
        const refreshed = await this.refresh(names);
        return new Map(names.flatMap((name) => (refreshed.has(name) ? [[name, refreshed.get(name)]] : [])));
    }
    /** The same for topics that must exist. @throws HttpError 404 */
    async existing(names) {
        const topics = await this.topics(names);
        const unknown = names.find((name) => !topics.has(name));
        if (unknown !== undefined)
            throw new HttpError('not_found', `There is no topic ${unknown}.`);
        return topics;
    }
    /** Every topic but Kafka's own; callers at the same time share one question. */
    allTopics() {
        // kafkajs sends an empty list as null, which asks for all
        this.everything ??= this.metadata([])
            .then((topics) => topics.filter((topic) => !topic.isInternal))
            .finally(() => {
            this.everything = undefined;
        });
        return this.everything;
    }
    /** Callers of the same moment share one question about all their topics. */
    refresh(names) {
        for (const name of names)
            this.wanted.add(name);
        this.refreshing ??= Promise.resolve().then(async () => {
            const batch = [...this.wanted];
            this.wanted = new Set();
            this.refreshing = undefined;
            const topics = await this.metadata(batch);
            for (const name of batch)
                this.known.delete(name);
            for (const topic of topics)
                this.known.set(topic.name, { topic, at: this.options.now() });
            return new Map(topics.map((topic) => [topic.name, topic]));
        });
        return this.refreshing;
    }
    /**
     * One request to one broker, its reply decoded and not judged.
     * @throws kafkajs' connection errors, KafkaTimeout
     */
    async request(node, lane, api, args, timeoutMs) {
        const address = this.nodes.get(node);
        if (address === undefined)
            throw unavailable(new Error(`broker ${node} is not known`));
        const connection = await this.connection(`${node} ${lane}`, address);
        return connection.request(api, args, timeoutMs);
    }
    /** One request to any broker that answers. @throws HttpError 503 */
    async ask(api, args) {
        const connection = await this.anyConnection();
        return connection.request(api, args, METADATA_MS).catch((error) => {
            throw unavailable(error);
        });
    }
    /** Resolves when a broker answers. @throws HttpError 503 */
    async check() {
        const connection = await this.anyConnection();
        await connection.ping(METADATA_MS).catch((error) => {
            throw unavailable(error);
        });
    }
    async metadata(names) {
        const reply = await this.ask('Metadata', { topics: names, allowAutoTopicCreation: false });
        this.nodes.clear();
        for (const { nodeId, host, port } of reply.brokers)
            this.nodes.set(nodeId, { host, port });
        return topicsOf(reply);
    }
    /** All known brokers are tried at once, those that the cluster told of and those of the configuration. */
    async anyConnection() {
        const known = [...this.nodes].map(([node, address]) => this.connection(`${node} control`, address));
        if (known.length > 0) {
            const first = await Promise.any(known).catch(() => undefined);
            if (first !== undefined)
                return first;
        }
        const seeds = this.seeds.map((address) => this.connection(`seed ${address.host}:${address.port}`, address));
        return Promise.any(seeds).catch((error) => {
            throw unavailable(error.errors[0]);
        });
    }
    async connection(key, address) {
        if (this.closed)
            throw new HttpError('stopping');
        const current = this.connections.get(key);
        if (current !== undefined) {
            const open = await current;
            if (open.isOpen && open.address.host === address.host && open.address.port === address.port)
                return open;
            if (this.connections.get(key) === current) {
                this.connections.delete(key);
                open.close();
            }
            return this.connection(key, address);
        }
        const opening = KafkaConnection.open(address, {
            clientId: 'portico',
            connectTimeoutMs: CONNECT_MS,
            logCreator: kafkaLogCreator(this.options.log),
        }).catch((error) => {
            this.connections.delete(key);
            // a broker that takes the connection and stays silent is as good as away
            throw error instanceof KafkaTimeout ? unavailable(error) : error;
        });
        this.connections.set(key, opening);
        return opening;
    }
    async close() {
        this.closed = true;
        const opened = await Promise.allSettled(this.connections.values());
        for (const result of opened)
            if (result.status === 'fulfilled')
                result.value.close();
        this.connections.clear();
    }
}
function parseAddress(text) {
    const colon = text.lastIndexOf(':');
    return { host: text.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(text.slice(colon + 1)) };
}
//# sourceMappingURL=cluster.js.map