import { randomBytes, randomFillSync } from 'node:crypto';

/** Under which name a sender's control headers came, and so under which name Portico's own headers go out. */
export type HeaderPrefix = 'Upstash' | 'Service';

export const DESTINATION_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type DestinationMethod = (typeof DESTINATION_METHODS)[number];

/** Header names in canonical case (`My-Header`) with their values. */
export type HeaderMap = Readonly<Record<string, string>>;

/** Limits that all messages with one key share, each `null` where the sender named none. */
export interface FlowControl {
  readonly key: string;
  /** Attempts at once. */
  readonly parallelism: number | null;
  /** Attempts begun in one period. */
  readonly rate: number | null;
  /** In seconds. */
  readonly period: number;
}

/** What the API and the log show as a digest; deliveries get the real values. */
export interface Redaction {
  readonly body: boolean;
  /** All headers, or those with these names (lower case). */
  readonly headers: 'all' | readonly string[];
}

/** What most messages do not have; stored as one JSON value, and nothing when there is none of it. */
export interface MessageDetails {
  readonly topicName?: string;
  readonly endpointName?: string;
  readonly scheduleId?: string;
  readonly labels?: readonly string[];
  readonly flow?: FlowControl;
  /** An expression in ms, see `retry-delay.ts`. */
  readonly retryDelay?: string;
  readonly redact?: Redaction;
}

/** Where a callback goes and how it is delivered. */
export interface CallbackTarget {
  readonly url: string;
  readonly method: DestinationMethod;
  readonly headers: HeaderMap;
  readonly maxRetries: number;
  /** `null`: the configured timeout. */
  readonly timeoutMs: number | null;
  readonly delayMs: number;
  readonly retryDelay?: string;
}

/**
 * What a message does for a workflow run: takes its steps to the workflow (`step`), calls a third party for it (`call`),
 * brings that one's answer (`callback`), tells of its failure (`failure`), or ends a wait that nobody else ended (`timer`).
 */
export type RunRole = 'step' | 'call' | 'callback' | 'failure' | 'timer';

/** Where a message stands in a workflow run. */
export interface RunPlace {
  /** The run's number: a bigint, as text. */
  readonly no: string;
  /** Of the step that it was made for. */
  readonly seq: number;
  readonly role: RunRole;
  /** Of the body, where each attempt has it made anew. */
  readonly bytes: number;
}

/** What a message is, from publish to its end. */
export interface Message {
  readonly id: string;
  readonly prefix: HeaderPrefix;
  /** As the sender spelled it: it is signed and shown so. */
  readonly url: string;
  readonly method: DestinationMethod;
  readonly headers: HeaderMap;
  readonly body: Buffer;
  /** Deliveries are one more. */
  readonly maxRetries: number;
  readonly timeoutMs: number | null;
  /** Unix time in ms of the first attempt. */
  readonly notBefore: number;
  /** Unix time in ms. */
  readonly createdAt: number;
  readonly callback: CallbackTarget | null;
  readonly failureCallback: CallbackTarget | null;
  /** The ordered queue in which it waits its turn; a callback has its message's. */
  readonly queueName: string | null;
  /** Address that published it. */
  readonly callerIp: string | null;
  /** Of a callback of an ordered queue: the message whose place it keeps occupied. */
  readonly callbackOf: string | null;
  readonly details: MessageDetails;
  /** Of a message that belongs to a workflow run. */
  readonly run?: RunPlace;
}

/** A message that is about to be stored. */
export interface NewMessage extends Message {
  /** Until the first attempt, in ms from now. */
  readonly delayMs: number;
  /** Under which no other message is taken for a while. */
  readonly deduplicationKey: string | null;
}

/** A message that one worker holds for one attempt. */
export interface ClaimedMessage extends Message {
  /** 0 for the first delivery; how often it was retried. */
  readonly attempt: number;
  /** Unix time in ms at which the attempt was due. */
  readonly dueAt: number;
  /** How often the message was ever claimed: only the newest claim may write an outcome. */
  readonly claims: number;
  /** Its body, where it tells the steps of a short run. */
  readonly told?: string;
}

/** What travels through RabbitMQ for a message: which of its attempts is due. */
export interface Ticket {
  readonly id: string;
  readonly attempt: number;
}

/** A ticket to be published, and when it is due. */
export interface DueTicket {
  readonly id: string;
  readonly attempt: number;
  readonly delayMs: number;
}

/** Random bytes are asked for in bulk: for each id alone they cost more than the rest of it. */
const POOL = Buffer.alloc(12 * 256);
let poolUsed = POOL.length;

function randomHex(): string {
  if (poolUsed === POOL.length) {
    randomFillSync(POOL);
    poolUsed = 0;
  }
  poolUsed += 12;
  return POOL.toString('hex', poolUsed - 12, poolUsed);
}

/** `msg_` and 33 characters of which the first 9 grow with time, so that new rows lie together in the index. */
export function newMessageId(now: number): string {
  return `msg_${now.toString(36).padStart(9, '0')}${randomHex()}`;
}

/** `<ms>-<number>`, the form that dead-letter ids have in the public SDKs' documents. */
export function newDeadLetterId(now: number): string {
  return `${now}-${randomBytes(4).readUInt32BE()}`;
}

/** Most tickets in one RabbitMQ message: the bound on what a gateway holds is this times its `concurrency`. */
export const MAX_TICKETS = 32;

/** As JSON: id, attempt, id, attempt ... */
export function encodeTickets(tickets: readonly Ticket[]): Buffer {
  return Buffer.from(JSON.stringify(tickets.flatMap(({ id, attempt }) => [id, attempt])));
}

/** Postgres' `int`, which counts the attempts. */
const MAX_ATTEMPT = 2 ** 31 - 1;

/** `undefined` for anything else: a ticket that Postgres refuses would fail all that are claimed with it, for ever. */
export function decodeTickets(content: Buffer): readonly Ticket[] | undefined {
  try {
    const list: unknown = JSON.parse(content.toString('utf8'));
    if (!Array.isArray(list) || list.length === 0 || list.length > 2 * MAX_TICKETS) return undefined;
    const tickets: Ticket[] = [];
    for (let i = 0; i < list.length; i += 2) {
      const [id, attempt]: unknown[] = [list[i], list[i + 1]];
      if (typeof id !== 'string' || !/^[\w-]{1,100}$/.test(id)) return undefined;
      if (typeof attempt !== 'number' || !Number.isInteger(attempt)) return undefined;
      if (attempt < 0 || attempt > MAX_ATTEMPT) return undefined;
      tickets.push({ id, attempt });
    }
    return tickets;
  } catch {
    return undefined;
  }
}

/** `my-header` as `My-Header`. */
export function canonicalHeaderName(name: string): string {
  return name === 'content-type'
    ? 'Content-Type'
    : name.toLowerCase().replace(/(^|-)[a-z]/g, (start) => start.toUpperCase());
}

/** A response's headers as the API and callbacks show them: names in canonical case. */
export function canonicalHeaders(
  headers: Readonly<Record<string, readonly string[]>>,
): Record<string, readonly string[]> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, values]) => [canonicalHeaderName(name), values]),
  );
}

/** Characters of a message's names beside its address, its headers and its body; the record of one that has none of these. */
const RECORD_BYTES = 400;

/** What a new message costs a statement, in bytes: of its body, and of its record, which may have 16 KiB of headers. */
export function writtenSize({ body, url, headers }: NewMessage): number {
  let size = RECORD_BYTES + url.length + body.length;
  for (const name in headers) size += name.length + (headers[name]?.length ?? 0);
  return size;
}
