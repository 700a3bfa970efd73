import type { CallbackTarget, ClaimedMessage, HeaderMap, Message, NewMessage } from './message.js';

/** A message as the statement `claim` returns it. */
export interface MessageRow {
  id: string;
  prefix: Message['prefix'];
  url: string;
  method: Message['method'];
  headers: HeaderMap;
  body: Buffer;
  max_retries: number;
  timeout_ms: number | null;
  /** bigint: text */
  not_before: string;
  created_at: string;
  callback: CallbackTarget | null;
  failure_callback: CallbackTarget | null;
  attempt: number;
  claims: number;
}

export function messageOf(row: MessageRow): ClaimedMessage {
  return {
    id: row.id,
    prefix: row.prefix,
    url: row.url,
    method: row.method,
    headers: row.headers,
    body: row.body,
    maxRetries: row.max_retries,
    timeoutMs: row.timeout_ms,
    notBefore: Number(row.not_before),
    createdAt: Number(row.created_at),
    callback: row.callback,
    failureCallback: row.failure_callback,
    attempt: row.attempt,
    claims: row.claims,
  };
}

/** A message as the first 13 values of the statement `insert`. */
export function insertValues(message: NewMessage): unknown[] {
  const { id, prefix, url, method, headers, body, maxRetries, timeoutMs } = message;
  const { notBefore, createdAt, callback, failureCallback, delayMs } = message;
  return [
    ...[id, prefix, url, method, JSON.stringify(headers), body, maxRetries, timeoutMs, notBefore, createdAt],
    ...[jsonOrNull(callback), jsonOrNull(failureCallback), delayMs],
  ];
}

function jsonOrNull(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}
