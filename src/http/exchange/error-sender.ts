import type { HttpError } from '../errors.js';
import type { ErrorFormat } from '../route.js';
import { type Exchange, JSON_TYPE } from './exchange.js';

/** How an error is worded where no contract says how: `{"error", "status"}`. */
export const plainFormat: ErrorFormat = ({ message, status }: HttpError) => ({ error: message, status });

/** Answers an error in the words of `format`. What is Portico's or a backend's fault goes to the log, with its cause. */
export function errorSender(format: ErrorFormat): (exchange: Exchange, error: HttpError) => void {
  return (exchange, error) => {
    logFailure(exchange, error);
    exchange.send(error.status, JSON_TYPE, JSON.stringify(format(error)), error.headers);
  };
}

function logFailure({ log, requestId, operationId }: Exchange, error: HttpError): void {
  if (error.status < 500 || error.code === 'stopping') return;
  const level = error.code === 'internal' ? 'error' : 'warn';
  log[level]({ err: error, requestId, operation: operationId, status: error.status }, 'request failed');
}

/** Answers an error where no contract says how. */
export const sendPlainError = errorSender(plainFormat);
