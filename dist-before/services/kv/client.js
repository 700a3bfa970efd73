import { Redis } from 'ioredis';
import { HttpError } from '../../http/errors.js';
import { readCommandTable } from './command-table.js';
import { CommandRules } from './commands.js';
import { notConnected } from './errors.js';
import { RespError } from './resp-decoder.js';
import { encodeCommand } from './resp-encoder.js';
import { Wire } from './wire.js';
/** Longest pause between two attempts to connect, in ms. */
const LONGEST_PAUSE_MS = 500;
/**
 * One Redis database behind one connection that all requests share. ioredis finds, opens and re-opens the connection
 * (TLS, login, database, wait for a loading server); commands and replies then pass over the socket itself by
 * `Wire`: ioredis makes a promise, a command object and several closures a command, and resends what may have run.
 */
export class KvClient {
    options;
    redis;
    wire;
    commandRules = new CommandRules(new Map());
    lastError;
    constructor(options) {
        this.options = options;
        this.redis = new Redis({
            ...connectionOf(options.url),
            protocol: 2,
            connectTimeout: options.connectTimeoutMs,
            connectionName: 'portico',
            enableOfflineQueue: false,
            maxRetriesPerRequest: 0,
            retryStrategy: (attempts) => Math.min(attempts * 50, LONGEST_PAUSE_MS),
        });
        this.redis.on('error', (error) => this.failed(error));
        this.redis.on('ready', () => this.takeOver());
        options.lifecycle.onStop('kv: Redis connection', () => this.redis.disconnect());
    }
    /** Which commands may run; without the server's own table until the first connection. */
    get rules() {
        return this.commandRules;
    }
    /**
     * Sends commands and resolves to what `finish` makes of their replies, one each and in order.
     * @throws HttpError at once while Redis is away; see `Wire.submit`
     */
    run(payload, expected, finish) {
        if (this.wire === undefined)
            return Promise.reject(notConnected(this.lastError));
        return this.wire.submit(payload, expected, finish);
    }
    /** Asks Redis for a sign of life. @throws HttpError with a reason fit to be shown */
    check() {
        if (this.wire === undefined)
            return Promise.reject(new HttpError('backend_unavailable', `not connected${this.reason()}`));
        return this.run(encodeCommand(['PING']), 1, ([reply]) => {
            if (reply instanceof RespError)
                throw new HttpError('backend_unavailable', classWord(reply.text));
        });
    }
    /** From here on ioredis only watches the socket for its end. */
    takeOver() {
        const socket = this.redis.stream;
        socket.removeAllListeners('data');
        const wire = new Wire(socket, this.options.stallMs);
        socket.once('close', () => {
            if (this.wire === wire)
                this.wire = undefined;
        });
        wire.submit(encodeCommand(['COMMAND']), 1, ([reply]) => this.opened(wire, reply)).catch(this.failed);
    }
    opened(wire, commands) {
        const table = readCommandTable(commands);
        if (table.size === 0)
            this.options.log.warn('Redis does not tell its commands (COMMAND): the read-only token can run none');
        this.commandRules = new CommandRules(table);
        this.wire = wire;
        this.lastError = undefined;
        this.options.log.info({ commands: table.size }, 'connected to Redis');
    }
    failed = (error) => {
        // one line for each kind of failure, not one for each of the attempts that meet it
        if (error.message !== this.lastError?.message)
            this.options.log.warn({ err: error }, 'no connection to Redis');
        this.lastError = error;
    };
    /** The system's code (ECONNREFUSED) or Redis' class word (WRONGPASS) of the last failure. */
    reason() {
        if (this.lastError === undefined)
            return '';
        const { code } = this.lastError;
        return ` (${code ?? classWord(this.lastError.message)})`;
    }
}
/** The class word of an error reply: the rest may quote what was sent. */
function classWord(text) {
    return /^[A-Z]+(?= )/.exec(text)?.[0] ?? 'error';
}
/** A URL as ioredis' options. Its own reading of URLs would let query parameters change any option. */
function connectionOf(text) {
    const url = new URL(text);
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    return {
        host: host === '' ? '127.0.0.1' : host,
        port: url.port === '' ? 6379 : Number(url.port),
        ...(url.username === '' ? {} : { username: decodeURIComponent(url.username) }),
        ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
        db: Number(url.pathname.slice(1)) || 0,
        ...(url.protocol === 'rediss:' ? { tls: {} } : {}),
    };
}
//# sourceMappingURL=client.js.map