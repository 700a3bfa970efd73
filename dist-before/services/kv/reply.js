import { RespError } from './resp-decoder.js';
/** A reply as the contract's object: `{"result":...}`, or `{"error":"..."}` for an error. */
export function replyJson(reply, encoding) {
    if (reply instanceof RespError)
        return errorJson(reply.text);
    return `{"result":${resultJson(reply ?? null, encoding)}}`;
}
export function errorJson(text) {
    return `{"error":${JSON.stringify(text)}}`;
}
/**
 * JSON text of a reply: integers with all their digits, strings by `encoding`. In base64 every string is encoded
 * but an `OK` that is the whole reply: clients decode all others, one inside an array included.
 */
function resultJson(value, encoding) {
    if (encoding === 'base64' && value instanceof Buffer && isOk(value))
        return '"OK"';
    return valueJson(value, encoding);
}
function valueJson(value, encoding) {
    if (value === null)
        return 'null';
    if (typeof value === 'string')
        return value;
    if (value instanceof Buffer) {
        // invalid UTF-8 becomes U+FFFD here; base64 needs no escapes
        return encoding === 'utf8' ? JSON.stringify(value.toString('utf8')) : `"${value.toString('base64')}"`;
    }
    // a script may put an error into an array; there it is one more string
    if (value instanceof RespError)
        return valueJson(Buffer.from(value.text), encoding);
    let text = '[';
    for (let i = 0; i < value.length; i++) {
        if (i > 0)
            text += ',';
        text += valueJson(value[i], encoding);
    }
    return `${text}]`;
}
function isOk(value) {
    return value.length === 2 && value[0] === 79 && value[1] === 75;
}
//# sourceMappingURL=reply.js.map