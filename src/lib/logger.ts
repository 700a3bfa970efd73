import { types } from 'node:util';
import { type DestinationStream, type Logger as PinoLogger, pino } from 'pino';
import { LogOutput } from './log-output.js';

export type Logger = PinoLogger;
export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

interface LoggedError {
  type: string;
  message: string;
  code?: unknown;
  stack?: string;
  cause?: LoggedError;
}

/**
 * What of an error is logged: type, message, code, stack and its causes (at most 5 deep). Drivers hang whole
 * commands, rows and connection settings on their errors (ioredis `command.args`, pg `detail`), which may hold
 * a caller's values or a password: none of those fields is taken.
 */
export function describeError(error: unknown, depth = 0): LoggedError {
  if (!types.isNativeError(error)) return { type: typeof error, message: String(error) };
  const described: LoggedError = { type: error.name, message: error.message };
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string' || typeof code === 'number') described.code = code;
  if (error.stack !== undefined) described.stack = error.stack;
  if (error.cause !== undefined && depth < 5) described.cause = describeError(error.cause, depth + 1);
  return described;
}

/** JSON lines on standard output (or `to`); a log call passes an error as `{ err }`. */
export function createLogger(level: LogLevel, to: DestinationStream = new LogOutput(1)): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { err: describeError },
  };
  return pino(options, to);
}
