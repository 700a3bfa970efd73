import { types } from 'node:util';
import { pino } from 'pino';
/**
 * What of an error is logged: type, message, code, stack and its causes (at most 5 deep). Drivers hang whole
 * commands, rows and connection settings on their errors (ioredis `command.args`, pg `detail`), which may hold
 * a caller's values or a password: none of those fields is taken.
 */
export function describeError(error, depth = 0) {
    if (!types.isNativeError(error))
        return { type: typeof error, message: String(error) };
    const described = { type: error.name, message: error.message };
    const code = error.code;
    if (typeof code === 'string' || typeof code === 'number')
        described.code = code;
    if (error.stack !== undefined)
        described.stack = error.stack;
    if (error.cause !== undefined && depth < 5)
        described.cause = describeError(error.cause, depth + 1);
    return described;
}
/** JSON lines on standard output (or `destination`); a log call passes an error as `{ err }`. */
export function createLogger(level, destination) {
    const options = {
        level,
        base: null,
        timestamp: pino.stdTimeFunctions.isoTime,
        serializers: { err: describeError },
    };
    return destination === undefined ? pino(options) : pino(options, destination);
}
//# sourceMappingURL=logger.js.map