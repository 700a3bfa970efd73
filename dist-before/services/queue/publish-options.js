import { validateHeaderName, validateHeaderValue } from 'node:http';
import { parseDuration } from '../../lib/duration.js';
import { isTransportHeader } from '../../lib/outbound.js';
import { checkDestination } from './destination.js';
import { canonicalHeaderName, DESTINATION_METHODS, } from './message.js';
/** Instructions that stand alone; those of a callback repeat most of them behind `callback-` or `failure-callback-`. */
const KNOWN = /^(method|forward-.+|header-forward|delay|not-before|retries|timeout|callback|failure-callback|(failure-)?callback-(method|timeout|retries|delay|forward-.+))$/;
const DEFAULT_RETRIES = 3;
/** Headers of a publish that describe its body and so go with it unasked. */
const BODY_HEADERS = ['content-type', 'content-encoding', 'content-language'];
/** Never forwarded by `Header-Forward`: they are about the way to Portico or open its doors. */
const NOT_FORWARDED = /^(authorization|cookie|forwarded|via|x-forwarded-.*|x-real-ip|upstash-.*|service-.*)$/;
/**
 * Reads the instructions of a publish. One that Portico does not know is refused: leaving it out would deliver
 * something else than was asked for.
 * @throws HttpError 400 naming the header
 */
export function readPublishOptions(controls, incoming, environment) {
    for (const name of controls.names) {
        if (!KNOWN.test(name))
            throw controls.refusal(name, 'is not supported by this service');
    }
    const { limits, now } = environment;
    const maxRetries = readRetries(controls, 'retries', limits, Math.min(DEFAULT_RETRIES, limits.maxRetries));
    return {
        method: readMethod(controls, 'method'),
        headers: readHeaders(controls, incoming),
        delayMs: readNotBefore(controls, limits, now) ?? readDelay(controls, 'delay', limits),
        maxRetries,
        timeoutMs: readTimeout(controls, 'timeout'),
        callback: readCallback(controls, 'callback', maxRetries, environment),
        failureCallback: readCallback(controls, 'failure-callback', maxRetries, environment),
    };
}
function readCallback(controls, name, retriesOfMessage, { limits, guard }) {
    const url = controls.get(name);
    if (url === undefined) {
        for (const [option] of controls.below(`${name}-`))
            throw controls.refusal(`${name}-${option}`, `needs a ${name} URL beside it`);
        return null;
    }
    checkDestination(url, `the ${name}`, guard);
    return {
        url,
        method: readMethod(controls, `${name}-method`),
        headers: { 'Content-Type': 'application/json', ...forwarded(controls, `${name}-forward-`) },
        maxRetries: readRetries(controls, `${name}-retries`, limits, retriesOfMessage),
        timeoutMs: readTimeout(controls, `${name}-timeout`),
        delayMs: readDelay(controls, `${name}-delay`, limits),
    };
}
function readMethod(controls, name) {
    const text = (controls.get(name) ?? 'POST').toUpperCase();
    const method = DESTINATION_METHODS.find((known) => known === text);
    if (method === undefined)
        throw controls.refusal(name, `expected one of ${DESTINATION_METHODS.join(', ')}`);
    return method;
}
function readRetries(controls, name, limits, byDefault) {
    const text = controls.get(name);
    if (text === undefined)
        return byDefault;
    if (!/^\d{1,9}$/.test(text))
        throw controls.refusal(name, 'expected a whole number of retries, 0 or more');
    const retries = Number(text);
    if (retries > limits.maxRetries)
        throw controls.refusal(name, `${retries} retries are more than the limit of ${limits.maxRetries} (maxRetries)`);
    return retries;
}
function readTimeout(controls, name) {
    const text = controls.get(name);
    if (text === undefined)
        return null;
    const ms = parseDuration(text);
    if (ms === undefined || ms === 0)
        throw controls.refusal(name, 'expected a duration above zero such as 30s or 2m');
    return Math.min(ms, 2 ** 31 - 1);
}
function readDelay(controls, name, limits) {
    const text = controls.get(name);
    if (text === undefined)
        return 0;
    const ms = parseDuration(text);
    if (ms === undefined)
        throw controls.refusal(name, 'expected a duration such as 30s, 5m or 1d10h');
    return withinMaxDelay(ms, controls, name, limits);
}
/** Unix seconds, as the wait from now in ms; 0 when that time is past. */
function readNotBefore(controls, limits, now) {
    const text = controls.get('not-before');
    if (text === undefined)
        return undefined;
    if (!/^\d{1,12}$/.test(text))
        throw controls.refusal('not-before', 'expected a Unix time in seconds');
    return withinMaxDelay(Math.max(0, Number(text) * 1_000 - now), controls, 'not-before', limits);
}
function withinMaxDelay(ms, controls, name, limits) {
    if (ms <= limits.maxDelay * 1_000)
        return ms;
    throw controls.refusal(name, `a delay of ${Math.ceil(ms / 1_000)} s is longer than the limit of ${limits.maxDelay} s (maxDelay)`);
}
function readHeaders(controls, incoming) {
    const headers = {};
    const everything = readFlag(controls, 'header-forward');
    for (const name in incoming) {
        const taken = BODY_HEADERS.includes(name) || (everything && !NOT_FORWARDED.test(name) && !isTransportHeader(name));
        const value = incoming[name];
        if (taken && value !== undefined)
            headers[canonicalHeaderName(name)] = Array.isArray(value) ? value.join(', ') : value;
    }
    return { ...headers, ...forwarded(controls, 'forward-') };
}
function readFlag(controls, name) {
    const text = controls.get(name)?.toLowerCase();
    if (text === undefined || text === 'false')
        return false;
    if (text !== 'true')
        throw controls.refusal(name, 'expected true or false');
    return true;
}
/** Transport headers are dropped rather than refused: programs that pass on all headers of a request send them unthinkingly. */
function forwarded(controls, start) {
    const headers = {};
    for (const [name, value] of controls.below(start)) {
        try {
            validateHeaderName(name);
            validateHeaderValue(name, value);
        }
        catch {
            throw controls.refusal(start + name, 'holds characters that cannot stand in a header');
        }
        if (!isTransportHeader(name))
            headers[canonicalHeaderName(name)] = value;
    }
    return headers;
}
//# sourceMappingURL=publish-options.js.map