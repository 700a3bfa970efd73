import type {
  CallbackTarget,
  ClaimedMessage,
  HeaderMap,
  Message,
  MessageDetails,
  NewMessage,
  RunRole,
} from '../message/message.js';
import { joined } from './pieces.js';

/** A message as the statements return it. */
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
  queue_name: string | null;
  caller_ip: string | null;
  callback_of: string | null;
  details: MessageDetails | null;
  attempt: number;
  claims: number;
  due_ms: number;
  run_no: string | null;
  run_seq: number;
  run_role: RunRole;
  run_bytes: number;
  /** Of a claim alone. */
  told?: string | null;
}

/** The columns of a `MessageRow`, of the table named `m`. */
export const MESSAGE_COLUMNS = `m.id, m.prefix, m.url, m.method, m.headers, m.body, m.max_retries, m.timeout_ms,
  m.not_before, m.created_at, m.callback, m.failure_callback, m.queue_name, m.caller_ip, m.callback_of, m.details,
  m.attempt, m.claims, m.run_no, m.run_seq, m.run_role, m.run_bytes, (extract(epoch from m.due_at) * 1000)::float8 as due_ms`;

const NO_DETAILS: MessageDetails = {};

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
    queueName: row.queue_name,
    callerIp: row.caller_ip,
    callbackOf: row.callback_of,
    details: row.details ?? NO_DETAILS,
    attempt: row.attempt,
    claims: row.claims,
    dueAt: row.due_ms,
    ...(row.run_no === null
      ? {}
      : { run: { no: row.run_no, seq: row.run_seq, role: row.run_role, bytes: row.run_bytes } }),
    ...(row.told == null ? {} : { told: row.told }),
  };
}

/** The record type of the messages that `insertedMessages` reads from JSON; their bodies lie beside it. */
export const NEW_MESSAGE_RECORD = `id text, prefix text, url text, method text, headers json, body_at int, body_size int, max_retries int,
  timeout_ms int, not_before bigint, created_at bigint, callback json, failure_callback json, queue_name text,
  caller_ip text, callback_of text, details json, delay_ms float8, source text,
  run_no bigint, run_seq int, run_role text, run_bytes int`;

/** New messages as two parameters of a statement. */
export interface NewMessageParameters {
  /** A JSON array of records. */
  readonly records: string;
  /** Their bodies one behind the other: as base64 in the records they cost Postgres twice as much CPU a message of 1 KiB. */
  readonly bodies: Buffer;
}

/** @param sources of callbacks: the messages, in the same order, whose outcome they report */
export function newMessageParameters(
  messages: readonly NewMessage[],
  sources?: readonly string[],
): NewMessageParameters {
  // SQL counts from 1
  let bodyAt = 1;
  const records = messages.map((message, i) => {
    const record = newMessageRecord(message, bodyAt, sources?.[i]);
    bodyAt += message.body.length;
    return record;
  });
  return { records: JSON.stringify(records), bodies: joined(messages.map(({ body }) => body)) };
}

/**
 * A message as `NEW_MESSAGE_RECORD`. What is absent is null in SQL.
 * @param bodyAt where its body begins among those that lie beside it, from 1 on
 */
export function newMessageRecord(
  message: NewMessage,
  bodyAt: number,
  source?: string,
): Record<string, unknown> {
  const { details } = message;
  return {
    id: message.id,
    prefix: message.prefix,
    url: message.url,
    method: message.method,
    headers: message.headers,
    body_at: bodyAt,
    body_size: message.body.length,
    max_retries: message.maxRetries,
    timeout_ms: message.timeoutMs ?? undefined,
    not_before: message.notBefore,
    created_at: message.createdAt,
    // a JSON null would be stored as one
    callback: message.callback ?? undefined,
    failure_callback: message.failureCallback ?? undefined,
    queue_name: message.queueName ?? undefined,
    caller_ip: message.callerIp ?? undefined,
    callback_of: message.callbackOf ?? undefined,
    details: Object.keys(details).length === 0 ? undefined : details,
    delay_ms: message.delayMs,
    source,
    run_no: message.run?.no,
    run_seq: message.run?.seq,
    run_role: message.run?.role,
    run_bytes: message.run?.bytes,
  };
}
