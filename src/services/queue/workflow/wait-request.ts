import { parseJsonBody } from '../../../http/body.js';
import { HttpError } from '../../../http/errors.js';
import { parseDuration } from '../../../lib/duration.js';
import type { PublishEnvironment } from '../intake/publish-options.js';
import type { AskedDelivery, StepPlace } from './run.js';
import { askedOfLists, placeOf, refusalOf } from './run-request.js';

/** A step that waits for an event; what of it is kept is kept as JSON. */
export interface WaitRequest {
  readonly runId: string;
  readonly event: string;
  readonly place: StepPlace;
  readonly timeoutMs: number;
  readonly kept: KeptWait;
}

/** What a wait becomes when it ends, and what is shown of it meanwhile. */
export interface KeptWait {
  /** As it was posted. */
  readonly step: Readonly<Record<string, unknown>>;
  /** How its end is brought to the workflow. */
  readonly asked: AskedDelivery;
  readonly url: string;
  readonly timeoutUrl: string;
  readonly timeoutHeaders: Readonly<Record<string, readonly string[]>>;
}

/** Characters of an event's id. */
const MAX_EVENT = 1_024;
/** The SDK's own. */
const DEFAULT_TIMEOUT = '7d';
const RUN_ID = /^(?:upstash|service)-workflow-runid$/i;

/**
 * The id of an event as it stands in a path. The SDKs send it as it is, so that one with a slash could not be told from a
 * run and an event.
 * @throws HttpError 412
 */
export function eventOf(segment: string): string {
  const event = decoded(segment);
  if (event.length > 0 && event.length <= MAX_EVENT && !/[\0/]/.test(event)) return event;
  throw new HttpError('limit_reached', `An event's id has 1 to ${MAX_EVENT} characters and no slash.`);
}

/** SDKs differ in whether they encode what they put into a path. */
export function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/**
 * Reads a wait. As all that is said within a run it is refused with 412: a 400 would be taken for the end of the run.
 * @throws HttpError 412
 */
export async function readWait(
  segment: string,
  body: Buffer,
  environment: PublishEnvironment,
): Promise<WaitRequest> {
  try {
    const event = eventOf(segment);
    const value = (await parseJsonBody(body)) as Record<string, unknown> | undefined;
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw new HttpError('limit_reached', 'The body of a wait is no JSON object.');
    const { step, timeout, url, timeoutUrl = url } = value;
    if (typeof step !== 'object' || step === null || Array.isArray(step))
      throw new HttpError('limit_reached', 'The body of a wait names no step.');
    const timeoutHeaders = listsOf(value.timeoutHeaders);
    return {
      runId: runIdOf(timeoutHeaders),
      event,
      place: placeOf(step as Record<string, unknown>),
      timeoutMs: timeoutOf(timeout, environment.limits.maxDelay),
      kept: {
        step: step as Record<string, unknown>,
        asked: askedOfLists(timeoutHeaders, environment),
        url: String(url ?? ''),
        timeoutUrl: String(timeoutUrl ?? ''),
        timeoutHeaders,
      },
    };
  } catch (error) {
    throw refusalOf(error);
  }
}

function runIdOf(headers: Readonly<Record<string, readonly string[]>>): string {
  const name = Object.keys(headers).find((key) => RUN_ID.test(key));
  const id = name === undefined ? undefined : headers[name]?.[0];
  if (id !== undefined && id !== '') return id;
  throw new HttpError(
    'limit_reached',
    'The body of a wait names no run (timeoutHeaders, Upstash-Workflow-RunId).',
  );
}

/** `{name: [value]}`, as the SDKs write headers in a body; a lone value counts as a list of it. */
function listsOf(value: unknown): Record<string, string[]> {
  const lists: Record<string, string[]> = {};
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return lists;
  for (const [name, given] of Object.entries(value)) {
    const values = Array.isArray(given) ? given : [given];
    if (!values.every((one) => ['string', 'number', 'boolean'].includes(typeof one)))
      throw new HttpError(
        'limit_reached',
        'timeoutHeaders: expected a string or a list of strings for each name.',
      );
    Object.defineProperty(lists, name, { value: values.map(String), enumerable: true });
  }
  return lists;
}

/** @param most seconds */
function timeoutOf(value: unknown, most: number): number {
  const text = String(value ?? DEFAULT_TIMEOUT);
  const ms = /^\d*\.\d+$/.test(text) ? Math.round(Number(text) * 1_000) : parseDuration(text);
  if (ms === undefined)
    throw new HttpError('limit_reached', `timeout: expected a duration such as 30s or 7d.`);
  if (ms > most * 1_000)
    throw new HttpError('limit_reached', `timeout: longer than the limit of ${most} s (maxDelay).`);
  return ms;
}
