const NETWORK_CODES = new Set([
    'ECONNREFUSED',
    'ECONNRESET',
    'EPIPE',
    'ETIMEDOUT',
    'ENOTFOUND',
    'EAI_AGAIN',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'ENOENT',
]);
// node-postgres throws these without a code
const CONNECT_TIMEOUT = /^timeout expired$|Connection terminated due to connection timeout/;
const UNAVAILABLE_TEXT = /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end/;
/**
 * What kind of failure a thrown error is. SQLSTATE classes: Postgres' manual, appendix A. Looks at the error's fields
 * only: an error that Node itself made is not an instance of another realm's `Error`.
 */
export function classifyDatabaseError(error) {
    const { code, message } = fieldsOf(error);
    if (isUnreachable(error))
        return { kind: 'unavailable', sqlState: undefined };
    if (/^[0-9A-Z]{5}$/.test(code))
        return { kind: kindOf(code), sqlState: code };
    if (UNAVAILABLE_TEXT.test(message))
        return { kind: 'unavailable', sqlState: undefined };
    if (/Query read timeout/.test(message))
        return { kind: 'timeout', sqlState: undefined };
    return { kind: 'other', sqlState: undefined };
}
function fieldsOf(error) {
    const { code, message } = (error ?? {});
    return { code: typeof code === 'string' ? code : '', message: typeof message === 'string' ? message : '' };
}
function kindOf(sqlState) {
    if (sqlState === '57014')
        return 'timeout';
    // 08 connection, 57P shutdown and crash, 53 out of connections, memory or disk, 25P03 idle in a transaction
    return /^(08|57P|53)|^25P03$/.test(sqlState) ? 'unavailable' : 'statement';
}
/** Whether the server could not be reached at all, so that every other attempt would fail as well. */
export function isUnreachable(error) {
    const { code, message } = fieldsOf(error);
    return NETWORK_CODES.has(code) || CONNECT_TIMEOUT.test(message);
}
/** Whether the connection on which `error` was thrown can run another statement. */
export function leavesConnectionUsable(error) {
    const { kind, sqlState } = classifyDatabaseError(error);
    return kind === 'statement' || kind === 'other' || sqlState === '57014';
}
//# sourceMappingURL=postgres-errors.js.map