import type { ByteBudget } from '../../../lib/byte-budget.js';
import type { Outbound } from '../../../lib/outbound/outbound.js';
import { OutboundError } from '../../../lib/outbound/outbound-error.js';
import type { AttemptResult } from '../message/decide.js';
import type { ClaimedMessage } from '../message/message.js';
import type { AccessTokens } from './access-tokens.js';
import type { Sign } from './signature.js';

export interface AttemptTools {
  readonly outbound: Outbound;
  readonly sign: Sign;
  /** For destinations that want one. */
  readonly tokens: AccessTokens;
  /** What an attempt of the message may come to at most. */
  readonly limits: (message: ClaimedMessage) => AttemptLimits;
  /** Those that all attempts keep together. */
  readonly responses: ByteBudget;
}

export interface AttemptLimits {
  /** Longest time, in ms; a message may shorten it. */
  readonly timeoutMs: number;
  /** Response bytes that are kept. */
  readonly maxResponseBytes: number;
}

/** Longest time for an attempt of the message, in ms. */
export function timeoutOf(message: ClaimedMessage, { timeoutMs }: AttemptLimits): number {
  return Math.min(timeoutMs, message.timeoutMs ?? timeoutMs);
}

/** Nothing was sent: the body could not be made. */
export class NotAttemptedError extends Error {
  constructor(cause: unknown) {
    super('the body of the message could not be read', { cause });
    this.name = 'NotAttemptedError';
  }
}

/** The attempt was cut short by this gateway's stop; the destination may or may not have got the message. */
export class InterruptedError extends Error {
  constructor() {
    super('the gateway is stopping');
    this.name = 'InterruptedError';
  }
}

/**
 * Delivers a message once.
 * @throws InterruptedError when `signal` aborts; whatever the destination does is a result
 */
export async function attemptDelivery(
  message: ClaimedMessage,
  signal: AbortSignal,
  { outbound, sign, tokens, limits: limitsOf, responses }: AttemptTools,
): Promise<AttemptResult> {
  const limits = limitsOf(message);
  const url = new URL(message.url);
  try {
    const access = isAuthorized(message) ? undefined : tokens.at(url);
    const token = await access?.value();
    const response = await outbound.send({
      url,
      method: message.method,
      headers: deliveryHeaders(message, sign, token),
      body: message.body,
      timeoutMs: timeoutOf(message, limits),
      maxBodyBytes: limits.maxResponseBytes,
      signal,
      budget: responses,
    });
    const { status, headers, body, truncated: isCut, release } = response;
    if (status === 401) access?.forget();
    return { kind: 'response', status, headers, body, isCut, release };
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    if (error.reason === 'aborted') throw new InterruptedError();
    return { kind: 'failure', reason: error.message };
  }
}

/**
 * The message's own headers, and those by which a receiver knows and verifies it; the latter cannot be overridden.
 * @returns names and values in turns: an object of 1,000 of them takes 300 KB to put together
 */
function deliveryHeaders(message: ClaimedMessage, sign: Sign, token: string | undefined): string[] {
  const { prefix, callerIp, details, headers } = message;
  const { topicName, scheduleId } = details;
  const label = labelOf(message);
  const added: Record<string, string> = {
    [`${prefix}-Message-Id`]: message.id,
    [`${prefix}-Retried`]: String(message.attempt),
    ...(callerIp === null ? {} : { [`${prefix}-Caller-Ip`]: callerIp }),
    ...(topicName === undefined ? {} : { [`${prefix}-Topic-Name`]: topicName }),
    ...(scheduleId === undefined ? {} : { [`${prefix}-Schedule-Id`]: scheduleId }),
    ...(label === undefined ? {} : { [`${prefix}-Label`]: label }),
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    ...sign(message),
  };
  const all: string[] = [];
  if (headers['User-Agent'] === undefined)
    all.push('User-Agent', prefix === 'Upstash' ? 'Upstash-QStash' : 'Portico');
  for (const name in headers) if (!Object.hasOwn(added, name)) all.push(name, headers[name] as string);
  for (const name in added) all.push(name, added[name] as string);
  return all;
}

/** The sender has said by what the destination knows it. */
function isAuthorized({ headers, url }: ClaimedMessage): boolean {
  return (
    /^https?:\/\/[^/?#]*@/i.test(url) || Object.keys(headers).some((name) => /^authorization$/i.test(name))
  );
}

/**
 * The SDK of a workflow takes the label of the run that a schedule starts from the delivery. Other messages' labels are
 * their sender's alone, and a label that is forwarded is what the sender wants to be read.
 */
function labelOf({ prefix, headers, details }: ClaimedMessage): string | undefined {
  const { labels, scheduleId } = details;
  if (labels === undefined || scheduleId === undefined) return undefined;
  const name = `${prefix}-Label`.toLowerCase();
  return Object.keys(headers).some((own) => own.toLowerCase() === name) ? undefined : labels.join(',');
}
