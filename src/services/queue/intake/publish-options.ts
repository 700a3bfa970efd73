import type { IncomingHttpHeaders } from 'node:http';
import { parseDuration } from '../../../lib/duration.js';
import {
  type CallbackTarget,
  DESTINATION_METHODS,
  type DestinationMethod,
  type FlowControl,
  type HeaderMap,
  type Redaction,
} from '../message/message.js';
import { retryDelayProblem } from '../message/retry-delay.js';
import type { Controls } from './control-headers.js';
import { checkDestination, type Guard } from './destination.js';
import { parseFlowLimits } from './flow-control-value.js';
import { deliveredHeaders, markedHeaders } from './forwarded-headers.js';
import { parseRedaction } from './redaction.js';

export interface PublishLimits {
  readonly maxRetries: number;
  /** Longest delay, in seconds. */
  readonly maxDelay: number;
}

/** Everything that a sender may ask of one delivery. */
export interface PublishOptions {
  readonly method: DestinationMethod;
  readonly headers: HeaderMap;
  readonly delayMs: number;
  readonly maxRetries: number;
  readonly timeoutMs: number | null;
  readonly callback: CallbackTarget | null;
  readonly failureCallback: CallbackTarget | null;
  readonly retryDelay: string | undefined;
  readonly labels: readonly string[];
  readonly flow: FlowControl | undefined;
  readonly redact: Redaction | undefined;
  /** By an id, by the content, or not at all. */
  readonly deduplication: { readonly id: string } | 'content' | undefined;
}

export interface PublishEnvironment {
  readonly limits: PublishLimits;
  readonly guard: Guard;
  /** Unix time in ms. */
  readonly now: number;
}

/** Instructions that stand alone; those of a callback repeat most of them behind `callback-` or `failure-callback-`. */
const KNOWN =
  /^(method|forward-.+|header-forward|delay|not-before|retries|retry-delay|timeout|callback|failure-callback|(failure-)?callback-(method|timeout|retries|retry-delay|delay|forward-.+)|deduplication-id|content-based-deduplication|flow-control-(key|value)|label|redact-fields|queue-name|cron|schedule-id)$/;

const DEFAULT_RETRIES = 3;
/** Longest name of a label, key or deduplication id; Postgres' indexes take 2,700 bytes. */
const MAX_NAME = 1_024;
const MAX_LABELS = 50;

/**
 * Reads the instructions of a publish. One that Portico does not know is refused: leaving it out would deliver
 * something else than was asked for.
 * @throws HttpError 400 naming the header
 */
export function readPublishOptions(
  controls: Controls,
  incoming: IncomingHttpHeaders,
  environment: PublishEnvironment,
): PublishOptions {
  for (const name of controls.names) {
    if (!KNOWN.test(name)) throw controls.refusal(name, 'is not supported by this service');
  }
  const { limits, now } = environment;
  const maxRetries = readRetries(controls, 'retries', limits, Math.min(DEFAULT_RETRIES, limits.maxRetries));
  return {
    method: readMethod(controls, 'method'),
    headers: deliveredHeaders(controls, incoming, readFlag(controls, 'header-forward')),
    delayMs: readNotBefore(controls, limits, now) ?? readDelay(controls, 'delay', limits),
    maxRetries,
    timeoutMs: readTimeout(controls, 'timeout'),
    callback: readCallback(controls, 'callback', maxRetries, environment),
    failureCallback: readCallback(controls, 'failure-callback', maxRetries, environment),
    retryDelay: readRetryDelay(controls, 'retry-delay'),
    labels: readLabels(controls),
    flow: readFlow(controls),
    redact: readRedaction(controls),
    deduplication: readDeduplication(controls),
  };
}

function readCallback(
  controls: Controls,
  name: 'callback' | 'failure-callback',
  retriesOfMessage: number,
  { limits, guard }: PublishEnvironment,
): CallbackTarget | null {
  const url = controls.get(name);
  if (url === undefined) {
    controls.eachBelow(`${name}-`, (option) => {
      throw controls.refusal(`${name}-${option}`, `needs a ${name} URL beside it`);
    });
    return null;
  }
  checkDestination(url, `the ${name}`, guard);
  const retryDelay = readRetryDelay(controls, `${name}-retry-delay`);
  return {
    url,
    method: readMethod(controls, `${name}-method`),
    headers: markedHeaders(controls, `${name}-forward-`, { 'Content-Type': 'application/json' }),
    maxRetries: readRetries(controls, `${name}-retries`, limits, retriesOfMessage),
    timeoutMs: readTimeout(controls, `${name}-timeout`),
    delayMs: readDelay(controls, `${name}-delay`, limits),
    ...(retryDelay === undefined ? {} : { retryDelay }),
  };
}

function readMethod(controls: Controls, name: string): DestinationMethod {
  const text = (controls.get(name) ?? 'POST').toUpperCase();
  const method = DESTINATION_METHODS.find((known) => known === text);
  if (method === undefined) throw controls.refusal(name, `expected one of ${DESTINATION_METHODS.join(', ')}`);
  return method;
}

function readRetries(controls: Controls, name: string, limits: PublishLimits, byDefault: number): number {
  const text = controls.get(name);
  if (text === undefined) return byDefault;
  if (!/^\d{1,9}$/.test(text)) throw controls.refusal(name, 'expected a whole number of retries, 0 or more');
  const retries = Number(text);
  if (retries > limits.maxRetries)
    throw controls.refusal(
      name,
      `${retries} retries are more than the limit of ${limits.maxRetries} (maxRetries)`,
    );
  return retries;
}

function readRetryDelay(controls: Controls, name: string): string | undefined {
  const text = controls.get(name);
  const problem = text === undefined ? undefined : retryDelayProblem(text);
  if (problem !== undefined) throw controls.refusal(name, `the expression ${problem}`);
  return text;
}

function readTimeout(controls: Controls, name: string): number | null {
  const text = controls.get(name);
  if (text === undefined) return null;
  const ms = parseDuration(text);
  if (ms === undefined || ms === 0)
    throw controls.refusal(name, 'expected a duration above zero such as 30s or 2m');
  return Math.min(ms, 2 ** 31 - 1);
}

function readDelay(controls: Controls, name: string, limits: PublishLimits): number {
  const text = controls.get(name);
  if (text === undefined) return 0;
  const ms = parseDuration(text);
  if (ms === undefined) throw controls.refusal(name, 'expected a duration such as 30s, 5m or 1d10h');
  return withinMaxDelay(ms, controls, name, limits);
}

/** Unix seconds, as the wait from now in ms; 0 when that time is past. */
function readNotBefore(controls: Controls, limits: PublishLimits, now: number): number | undefined {
  const text = controls.get('not-before');
  if (text === undefined) return undefined;
  if (!/^\d{1,12}$/.test(text)) throw controls.refusal('not-before', 'expected a Unix time in seconds');
  return withinMaxDelay(Math.max(0, Number(text) * 1_000 - now), controls, 'not-before', limits);
}

function withinMaxDelay(ms: number, controls: Controls, name: string, limits: PublishLimits): number {
  if (ms <= limits.maxDelay * 1_000) return ms;
  throw controls.refusal(
    name,
    `a delay of ${Math.ceil(ms / 1_000)} s is longer than the limit of ${limits.maxDelay} s (maxDelay)`,
  );
}

function readLabels(controls: Controls): string[] {
  const text = controls.get('label');
  if (text === undefined) return [];
  const labels = [...new Set(text.split(',').map((label) => label.trim()))].filter((label) => label !== '');
  if (labels.length === 0 || labels.length > MAX_LABELS || text.length > MAX_NAME)
    throw controls.refusal('label', `expected 1 to ${MAX_LABELS} labels, ${MAX_NAME} characters in all`);
  return labels;
}

function readFlow(controls: Controls): FlowControl | undefined {
  const key = controls.get('flow-control-key');
  const value = controls.get('flow-control-value');
  if (key === undefined && value === undefined) return undefined;
  if (key === undefined) throw controls.refusal('flow-control-value', 'needs a flow-control key beside it');
  if (value === undefined) throw controls.refusal('flow-control-key', 'needs a flow-control value beside it');
  if (key === '' || Buffer.byteLength(key) > MAX_NAME)
    throw controls.refusal('flow-control-key', `expected 1 to ${MAX_NAME} bytes`);
  const limits = parseFlowLimits(value);
  if (typeof limits === 'string') throw controls.refusal('flow-control-value', limits);
  return { key, ...limits };
}

function readRedaction(controls: Controls): Redaction | undefined {
  const text = controls.get('redact-fields');
  if (text === undefined) return undefined;
  const redact = parseRedaction(text);
  if (redact === undefined) throw controls.refusal('redact-fields', 'expected body, header or header[Name]');
  return redact;
}

function readDeduplication(controls: Controls): PublishOptions['deduplication'] {
  const id = controls.get('deduplication-id');
  if (id !== undefined && (id === '' || id.length > MAX_NAME))
    throw controls.refusal('deduplication-id', `expected 1 to ${MAX_NAME} characters`);
  if (id !== undefined) return { id };
  return readFlag(controls, 'content-based-deduplication') ? 'content' : undefined;
}

function readFlag(controls: Controls, name: string): boolean {
  const text = controls.get(name)?.toLowerCase();
  if (text === undefined || text === 'false') return false;
  if (text !== 'true') throw controls.refusal(name, 'expected true or false');
  return true;
}
