import type { HttpError } from '../errors.js';
import type { ErrorFormat } from '../route.js';
import { type Exchange, JSON_TYPE } from './exchange.js';

/** How an error is worded where no contract says how: `{"error", "status"}`. */
export const plainFormat: ErrorFormat = ({ message, status }: HttpError) => ({ error: message, status });

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
