/**
 * The contracts' own header prefixes and the names under which the SDKs send the same headers. What arrives under
 * an alias is read as if it had come under the contract's name; the contract's name wins when both are there.
 */
export const HEADER_ALIASES = {
    'service-': 'upstash-',
    'broker-': 'kafka-',
};
const PREFIXES = Object.entries(HEADER_ALIASES);
/** Value of the header with the contract's name `name` (lower case, such as `service-encoding`), under it or its alias. */
export function contractHeader(headers, name) {
    const own = single(headers[name]);
    if (own !== undefined)
        return own;
    for (const [prefix, alias] of PREFIXES) {
        if (name.startsWith(prefix))
            return single(headers[alias + name.slice(prefix.length)]);
    }
    return undefined;
}
/** All headers with aliases replaced by the contract's names; a repeated header is joined by `, `. */
export function withContractNames(headers) {
    const named = {};
    for (const name in headers) {
        const value = single(headers[name]);
        if (value === undefined)
            continue;
        const contract = contractName(name);
        if (contract === name || headers[contract] === undefined)
            named[contract] = value;
    }
    return named;
}
function contractName(name) {
    for (const [prefix, alias] of PREFIXES) {
        if (name.startsWith(alias))
            return prefix + name.slice(alias.length);
    }
    return name;
}
function single(value) {
    return Array.isArray(value) ? value.join(', ') : value;
}
//# sourceMappingURL=headers.js.map