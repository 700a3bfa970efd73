import { plainFormat } from './error-wording.js';
import type { HttpError } from './errors.js';
import type { Exchange } from './exchange.js';
import { JSON_TYPE } from './mount.js';
import type { ErrorFormat } from './route.js';

/** Answers an error in the words of `format`. */
export function errorSender(format: ErrorFormat): (exchange: Exchange, error: HttpError) => void {
  return (exchange, error) => {
    if (error.status >= 500)
      exchange.log.error({ err: error, requestId: exchange.requestId }, 'request failed');
    exchange.send(error.status, JSON_TYPE, JSON.stringify(format(error)), error.headers);
  };
}

/** Answers an error where no contract says how. */
export const sendPlainError = errorSender(plainFormat);
