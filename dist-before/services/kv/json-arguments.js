import { isUtf8 } from 'node:buffer';
import { HttpError } from '../../http/errors.js';
/**
 * A command from a JSON array of strings, numbers and booleans. A number is sent as it is written in the body, so
 * that 64-bit integers and `1.0` stay what they are; `true` and `false` are sent as these words.
 * @throws HttpError `invalid_request`
 */
export function commandOfJson(body) {
    const { text, value } = parse(body);
    if (!Array.isArray(value))
        throw invalid('expected a JSON array: a command and its arguments');
    return isTexts(value) ? value : convert(value, numberLiterals(text));
}
/**
 * Commands from a JSON array of arrays, each as in `commandOfJson`.
 * @throws HttpError `invalid_request`, before anything of the body is used
 */
export function commandsOfJson(body) {
    const { text, value } = parse(body);
    if (!Array.isArray(value) || !value.every((row) => Array.isArray(row)))
        throw invalid('expected a JSON array of arrays, each a command and its arguments');
    if (value.length === 0)
        throw invalid('empty pipeline request');
    if (value.every(isTexts))
        return value;
    const literals = numberLiterals(text);
    return value.map((row) => convert(row, literals));
}
function invalid(message) {
    return new HttpError('invalid_request', `ERR ${message}`);
}
function parse(body) {
    if (body.length === 0)
        throw invalid('empty body: expected a JSON array');
    if (!isUtf8(body))
        throw invalid('failed to parse command: the body is not valid UTF-8');
    const text = body.toString('utf8');
    try {
        return { text, value: JSON.parse(text) };
    }
    catch {
        throw invalid('failed to parse command: the body is not valid JSON');
    }
}
function isTexts(row) {
    for (let i = 0; i < row.length; i++) {
        if (typeof row[i] !== 'string')
            return false;
    }
    return true;
}
function convert(row, literals) {
    return row.map((argument) => {
        switch (typeof argument) {
            case 'string':
                return argument;
            case 'number':
                return literals.next().value ?? String(argument);
            case 'boolean':
                return String(argument);
            default:
                throw invalid(argument === null
                    ? 'null args are not supported'
                    : 'unsupported arg type: expected a string, a number or a boolean');
        }
    });
}
/**
 * The numbers of a valid JSON text as they are written, in order: `JSON.parse` rounds integers above 2^53 and, on
 * Node 20, gives no access to the source text.
 */
function* numberLiterals(text) {
    const interesting = /["\d-]/g;
    const number = /[-+.\deE]+/y;
    for (let found = interesting.exec(text); found !== null; found = interesting.exec(text)) {
        if (found[0] === '"') {
            interesting.lastIndex = endOfString(text, found.index);
        }
        else {
            number.lastIndex = found.index;
            const literal = number.exec(text)?.[0] ?? '';
            interesting.lastIndex = found.index + literal.length;
            yield literal;
        }
    }
    return undefined;
}
/** Index after the closing quote of the string that opens at `start`. */
function endOfString(text, start) {
    for (let at = start + 1;; at++) {
        at = text.indexOf('"', at);
        if (at < 0)
            return text.length;
        let backslashes = 0;
        while (text[at - 1 - backslashes] === '\\')
            backslashes += 1;
        if (backslashes % 2 === 0)
            return at + 1;
    }
}
//# sourceMappingURL=json-arguments.js.map