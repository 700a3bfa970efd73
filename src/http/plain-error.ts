import type { HttpError } from './errors.js';
import type { Exchange } from './exchange.js';
import { JSON_TYPE } from './mount.js';

/** Answers an error where no contract says how: `{"error", "status"}`. */
export function sendPlainError(exchange: Exchange, error: HttpError): void {
  if (error.status >= 500)
    exchange.log.error({ err: error, requestId: exchange.requestId }, 'request failed');
  const body = JSON.stringify({ error: error.message, status: error.status });
  exchange.send(error.status, JSON_TYPE, body, error.headers);
}
