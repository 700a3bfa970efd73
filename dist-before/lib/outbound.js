import { lookup } from 'node:dns';
import { isIP } from 'node:net';
import { types } from 'node:util';
import { Agent, buildConnector, errors, request } from 'undici';
/** Why no response came. `message` names no credential and may be shown to the sender. */
export class OutboundError extends Error {
    reason;
    constructor(reason, message, options) {
        super(message, options);
        this.reason = reason;
        this.name = 'OutboundError';
    }
}
/** Longest time for TCP and TLS to a destination, in ms. */
const CONNECT_MS = 10_000;
/**
 * A pooled, keep-alive HTTP client for destinations named by others: it connects only to addresses that `guard` passes,
 * checked on the very address that is connected to (so a name that changes between two look-ups gains nothing), and
 * follows no redirect.
 */
export class Outbound {
    guard;
    resolve;
    agent;
    /** @param resolve an argument so that a test can be the name server */
    constructor(guard, resolve = lookup) {
        this.guard = guard;
        this.resolve = resolve;
        // `signal` bounds the whole exchange; undici's own two timers would only cut at 300 s and cost a timer each
        this.agent = new Agent({ connect: this.connector(), headersTimeout: 0, bodyTimeout: 0, pipelining: 1 });
    }
    /** @throws OutboundError when no complete response head came */
    async send(outgoing) {
        const timeout = AbortSignal.timeout(outgoing.timeoutMs);
        const signal = AbortSignal.any([timeout, outgoing.signal]);
        try {
            const response = await request(withoutCredentials(outgoing.url), {
                dispatcher: this.agent,
                method: outgoing.method,
                headers: withCredentials(outgoing),
                body: outgoing.body.length === 0 ? null : outgoing.body,
                signal,
            });
            const { body, truncated } = await readUpTo(response.body, outgoing.maxBodyBytes);
            return { status: response.statusCode, headers: listsOf(response.headers), body, truncated };
        }
        catch (error) {
            throw translate(error, outgoing, timeout);
        }
    }
    /** Cuts what is still open. */
    async close() {
        await this.agent.destroy();
    }
    connector() {
        const connect = buildConnector({ timeout: CONNECT_MS, lookup: guardedLookup(this.guard, this.resolve) });
        return (options, callback) => {
            // `lookup` is not asked about IP literals (undici 7.30), so they are judged here
            const refusal = isIP(options.hostname) === 0 ? undefined : this.guard.judgeHost(options.hostname);
            if (refusal === undefined)
                connect(options, callback);
            else
                callback(new OutboundError('blocked', refusal), null);
        };
    }
}
/**
 * Headers that belong to one connection or are computed by the client: undici throws on most of them and would let
 * `Host` be forged. `name` in lower case.
 */
export function isTransportHeader(name) {
    return TRANSPORT_HEADERS.has(name) || name.startsWith('proxy-');
}
const TRANSPORT_HEADERS = new Set([
    'connection',
    'content-length',
    'expect',
    'host',
    'http2-settings',
    'keep-alive',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
]);
/** `dns.lookup` that hands on only addresses which the guard passes, and fails when none is left. */
function guardedLookup(guard, resolve) {
    return (hostname, options, callback) => {
        resolve(hostname, { ...options, all: true }, (error, addresses) => {
            if (error !== null) {
                callback(error, []);
                return;
            }
            const judged = addresses.map((entry) => ({
                entry,
                refusal: guard.judgeAddress(entry.address, hostname),
            }));
            const passed = judged.flatMap(({ entry, refusal }) => refusal === undefined ? [entry] : []);
            const [first] = passed;
            if (first === undefined)
                callback(new OutboundError('blocked', judged[0]?.refusal ?? 'the name has no address'), []);
            else if (options.all === true)
                callback(null, passed);
            else
                callback(null, first.address, first.family);
        });
    };
}
function withoutCredentials(url) {
    if (url.username === '' && url.password === '')
        return url;
    const bare = new URL(url);
    bare.username = '';
    bare.password = '';
    return bare;
}
function withCredentials({ url, headers }) {
    if (url.username === '' && url.password === '')
        return { ...headers };
    if (Object.keys(headers).some((name) => name.toLowerCase() === 'authorization'))
        return { ...headers };
    const pair = `${decoded(url.username)}:${decoded(url.password)}`;
    return { ...headers, authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}
function decoded(text) {
    try {
        return decodeURIComponent(text);
    }
    catch {
        return text;
    }
}
async function readUpTo(stream, limit) {
    const chunks = [];
    let size = 0;
    for await (const chunk of stream) {
        const room = limit - size;
        chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
        size += chunk.length;
        // leaving the loop destroys the stream and with it the connection: the rest is never read
        if (size > limit)
            return { body: Buffer.concat(chunks), truncated: true };
    }
    return { body: Buffer.concat(chunks), truncated: false };
}
function listsOf(headers) {
    const lists = {};
    for (const [name, value] of Object.entries(headers)) {
        if (value !== undefined)
            lists[name] = Array.isArray(value) ? value : [value];
    }
    return lists;
}
function translate(error, { timeoutMs, signal }, timeout) {
    if (error instanceof OutboundError)
        return error;
    if (signal.aborted)
        return new OutboundError('aborted', 'the attempt was interrupted', { cause: error });
    if (timeout.aborted || error instanceof errors.ConnectTimeoutError)
        return new OutboundError('timeout', `no complete response within ${Math.min(timeoutMs, timeout.aborted ? timeoutMs : CONNECT_MS)} ms`, { cause: error });
    return new OutboundError('network', describe(error), { cause: error });
}
/** A connection to several addresses fails with one error that holds the others. */
function describe(error) {
    if (error instanceof AggregateError && error.errors.length > 0)
        return describe(error.errors[0]);
    const code = error.code;
    const message = types.isNativeError(error) ? error.message : String(error);
    return typeof code === 'string' && !message.includes(code)
        ? `${message} (${code})`
        : message || 'the request failed';
}
//# sourceMappingURL=outbound.js.map