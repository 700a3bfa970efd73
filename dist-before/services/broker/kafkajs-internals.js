import Batch from 'kafkajs/src/consumer/batch.js';
import loggers from 'kafkajs/src/loggers/index.js';
import Connection from 'kafkajs/src/network/connection.js';
import RequestQueue from 'kafkajs/src/network/requestQueue/index.js';
import createSocketFactory from 'kafkajs/src/network/socketFactory.js';
import protocolErrors from 'kafkajs/src/protocol/error.js';
import apiKeys from 'kafkajs/src/protocol/requests/apiKeys.js';
import protocol from 'kafkajs/src/protocol/requests/index.js';
/** The broker was sent a request and has not answered in time. */
export class KafkaTimeout extends Error {
    constructor(api, timeoutMs) {
        super(`Kafka did not answer ${api} within ${timeoutMs} ms`);
        this.name = 'KafkaTimeout';
    }
}
/**
 * One TCP connection to one broker. Requests on it are answered in the order sent, one after the other, so whatever
 * may wait long at the broker (a fetch at the end of a log) needs a connection of its own.
 */
export class KafkaConnection {
    address;
    connection;
    versions = {};
    constructor(address, connection) {
        this.address = address;
        this.connection = connection;
    }
    /** @throws kafkajs' KafkaJSConnectionError, or KafkaTimeout when the broker accepts and stays silent */
    static async open(address, options) {
        const connection = new Connection({
            ...address,
            clientId: options.clientId,
            logger: loggers.createLogger({ level: 5, logCreator: options.logCreator }),
            socketFactory: createSocketFactory(),
            connectionTimeout: options.connectTimeoutMs,
            requestTimeout: options.connectTimeoutMs,
            // kafkajs would look through all requests every 100 ms, on every connection; each request has its timer here
            enforceRequestTimeout: false,
            maxInFlightRequests: null,
        });
        const opened = new KafkaConnection(address, connection);
        await opened.within('connect', options.connectTimeoutMs, connection.connect());
        opened.versions = await opened.apiVersions(options.connectTimeoutMs);
        connection.setVersions(opened.versions);
        return opened;
    }
    get isOpen() {
        return this.connection.isConnected();
    }
    /**
     * The decoded reply with every error code left in its place: kafkajs' own parse step would throw the first of them
     * and drop all the rest.
     * @throws KafkaTimeout, after which the connection is closed: what it would still deliver belongs to nobody
     */
    async request(api, args, timeoutMs) {
        const definition = protocol.requests[api];
        if (definition === undefined)
            throw new Error(`kafkajs does not know ${api}`);
        const call = protocol.lookup(this.versions)(apiKeys[api], definition)(args);
        const reply = this.connection.send({
            ...call,
            response: { decode: call.response.decode, parse: async (decoded) => decoded },
        });
        return (await this.within(api, timeoutMs, reply));
    }
    /** Resolves when the broker answers at all. */
    async ping(timeoutMs) {
        await this.apiVersions(timeoutMs);
    }
    close(reason = new Error('The connection was closed')) {
        this.connection.requestQueue.rejectAll(reason);
        this.connection.disconnect().catch(() => { });
        this.connection.socket?.destroy();
    }
    async apiVersions(timeoutMs) {
        const call = protocol.requests.ApiVersions?.protocol({ version: 2 })();
        if (call === undefined)
            throw new Error('kafkajs does not know ApiVersions');
        const reply = (await this.within('ApiVersions', timeoutMs, this.connection.send(call)));
        return Object.fromEntries(reply.apiVersions.map((range) => [range.apiKey, range]));
    }
    async within(api, timeoutMs, reply) {
        let timer;
        const late = new Promise((_, reject) => {
            timer = setTimeout(() => {
                const timeout = new KafkaTimeout(api, timeoutMs);
                reject(timeout);
                this.close(timeout);
            }, timeoutMs);
        });
        try {
            return await Promise.race([reply, late]);
        }
        finally {
            clearTimeout(timer);
        }
    }
}
/** Kafka's name of an error code, such as `NOT_LEADER_FOR_PARTITION`. */
export function errorType(code) {
    return protocolErrors.createErrorFromCode(code).type;
}
/** The readable records of one partition of a Fetch reply: without control records, aborted transactions and what lies before `offset`. */
export function readableRecords(topic, offset, partitionData) {
    const batch = new Batch(topic, offset, partitionData);
    return {
        messages: batch.messages,
        holdsRecords: batch.rawMessages.length > 0,
        lastOffset: batch.lastOffset(),
    };
}
/**
 * kafkajs' request queue re-arms a timer with a negative delay for ever: about 870 wake-ups a second on every idle
 * connection (measured; issues 1704 and 1751 there). With nothing pending and no throttle there is nothing to check.
 */
export function calmIdleConnections() {
    const { prototype } = RequestQueue;
    const original = prototype.scheduleCheckPendingRequests;
    if (original.name === CALMED)
        return;
    const calmed = {
        [CALMED]() {
            if (this.pending.length > 0 || this.throttledUntil > Date.now())
                original.call(this);
        },
    };
    prototype.scheduleCheckPendingRequests = calmed[CALMED];
}
const CALMED = 'scheduleCheckPendingRequestsWhenAny';
//# sourceMappingURL=kafkajs-internals.js.map