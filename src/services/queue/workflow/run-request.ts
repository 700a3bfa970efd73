import type { IncomingHttpHeaders } from 'node:http';
import { parseJsonBody } from '../../../http/body.js';
import { HttpError } from '../../../http/errors.js';
import { jsonText, jsonTextWithin } from '../../../lib/json/json-text.js';
import { Controls } from '../intake/control-headers.js';
import { checkDestination } from '../intake/destination.js';
import {
  type PublishEnvironment,
  type PublishOptions,
  readPublishOptions,
} from '../intake/publish-options.js';
import type { DestinationMethod, HeaderMap } from '../message/message.js';
import { type AskedDelivery, type Delivery, INITIAL, type RunSettings, type StepPlace } from './run.js';
import { type RunHeaders, readRunHeaders, type TargetHeaders } from './run-headers.js';

/** One request of an SDK that has to do with a run, however it came. */
export interface RunPublish {
  readonly destination: string;
  /** Names in lower case. */
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly callerIp: string | null;
  /** It starts a run without an SDK: the first answer must come from one that can do that. */
  readonly isPlainTrigger?: boolean;
}

interface Addressed {
  readonly runId: string;
  /** Which run of that id, where the request says it. */
  readonly createdMs: number | undefined;
}

/** A run is to be started. */
export interface TriggerRequest {
  readonly kind: 'trigger';
  readonly runId: string;
  readonly url: string;
  readonly settings: RunSettings;
  readonly labels: readonly string[];
  readonly body: Buffer;
  readonly delayMs: number;
  readonly callerIp: string | null;
  readonly unknownSdk: boolean;
  readonly triggerBySdk: boolean;
}

/** A step's result, or the plan of a branch. */
export interface StepRequest extends Addressed {
  readonly kind: 'step';
  readonly place: StepPlace;
  readonly body: Buffer;
  readonly asked: AskedDelivery;
  readonly delayMs: number;
}

/** A third party is to be called. */
export interface CallRequest extends Addressed {
  readonly kind: 'call';
  readonly place: StepPlace;
  readonly url: string;
  readonly method: DestinationMethod;
  readonly delivery: Delivery;
  readonly body: Buffer;
  readonly delayMs: number;
  /** How the answer is brought to the workflow. */
  readonly callback: AskedDelivery;
}

/** A step starts another run and waits for its end. */
export interface InvokeRequest extends Addressed {
  readonly kind: 'invoke';
  readonly place: StepPlace;
  readonly step: Readonly<Record<string, unknown>>;
  readonly trigger: TriggerRequest;
  /** How the child's result is brought to the workflow. */
  readonly asked: AskedDelivery;
  readonly body: Buffer;
}

/** What a wait or an invocation says beside its data, in characters: it is kept, shown and told as a whole. */
export const MAX_ASKED = 1024 * 1024;

export type RunRequest = TriggerRequest | StepRequest | CallRequest | InvokeRequest;

/**
 * Reads a request of a run. Whatever is refused is so with 412: the SDKs take a 400 for the end of the run, and a run that
 * is told so would be left as it is for ever; a 412 fails it with the text.
 * @throws HttpError 412
 */
export async function readRunRequest(
  publish: RunPublish,
  environment: PublishEnvironment,
): Promise<RunRequest> {
  try {
    const headers = readRunHeaders(publish.headers);
    if (headers.callType === 'toCallback') return readCall(publish, headers, environment);
    if (headers.isInit && headers.isInvoke) return await readInvoke(publish, headers, environment);
    if (headers.isInit) return readTrigger(publish, headers, publish.body, environment);
    return await readStep(publish, headers, environment);
  } catch (error) {
    throw refusalOf(error);
  }
}

/** Refusals of what was asked, as the SDKs understand them. */
export function refusalOf(error: unknown): unknown {
  if (!(error instanceof HttpError)) return error;
  return [400, 404, 413].includes(error.status) ? new HttpError('limit_reached', error.message) : error;
}

function readTrigger(
  { destination, callerIp, isPlainTrigger = false }: RunPublish,
  headers: RunHeaders,
  body: Buffer,
  environment: PublishEnvironment,
): TriggerRequest {
  const url = headers.url ?? destination;
  checkDestination(url, 'The workflow URL', environment.guard);
  const options = optionsOf(headers.own, environment, headers.own);
  const { features } = headers;
  const delivery = deliveryOf(options);
  return {
    kind: 'trigger',
    runId: headers.runId,
    url,
    settings: {
      delivery,
      failure: readFailure(headers.failure, delivery, environment),
      holds: features.has('WF_TriggerOnConfig'),
      // others announce that they fetch and then do not
      isLazy: features.has('LazyFetch') && features.has('WF_TriggerOnConfig'),
      detects: features.has('WF_DetectTrigger'),
      needsSdk: isPlainTrigger,
    },
    labels: options.labels,
    body,
    delayMs: options.delayMs,
    callerIp,
    unknownSdk: headers.unknownSdk,
    triggerBySdk: headers.triggerBySdk,
  };
}

function readFailure(
  { url, headers }: TargetHeaders,
  ofRun: Delivery,
  environment: PublishEnvironment,
): RunSettings['failure'] {
  if (url === undefined) return null;
  checkDestination(url, 'The failure callback', environment.guard);
  const { delivery, said } = askedDelivery(headers, environment);
  return {
    url,
    delivery: said.includes('maxRetries') ? delivery : { ...delivery, maxRetries: ofRun.maxRetries },
  };
}

async function readStep(
  { body }: RunPublish,
  headers: RunHeaders,
  environment: PublishEnvironment,
): Promise<StepRequest> {
  const options = optionsOf(headers.own, environment, headers.own);
  const asked = askedOf(options, headers.own);
  const { delayMs } = options;
  const place = placeOf(await jsonObject(body));
  return { kind: 'step', ...addressOf(headers), place, body, asked, delayMs };
}

function readCall(
  { destination, body }: RunPublish,
  headers: RunHeaders,
  environment: PublishEnvironment,
): CallRequest {
  checkDestination(destination, 'The URL of the call', environment.guard);
  const options = optionsOf(headers.own, environment, headers.own);
  const callback = askedDelivery(headers.callback.headers, environment);
  const told = (name: string) => callback.delivery.headers[`Upstash-Workflow-${name}`];
  const place = placeOf({
    stepId: Number(told('Stepid')),
    concurrent: Number(told('Concurrent') ?? 1),
    stepName: told('Stepname') ?? '',
    stepType: told('Steptype') ?? 'Call',
  });
  return {
    kind: 'call',
    ...addressOf(headers),
    place,
    url: destination,
    method: options.method,
    delivery: {
      ...deliveryOf(options),
      // what the user sends to a third party goes there as it is
      headers: options.headers,
      maxRetries: headers.own['upstash-retries'] === undefined ? 0 : options.maxRetries,
    },
    body,
    delayMs: options.delayMs,
    callback,
  };
}

async function readInvoke(
  publish: RunPublish,
  headers: RunHeaders,
  environment: PublishEnvironment,
): Promise<InvokeRequest> {
  const envelope = await jsonObject(publish.body);
  const { step, workflowRunId, workflowRunCreatedAt, body } = envelope;
  if (typeof workflowRunId !== 'string' || typeof step !== 'object' || step === null)
    throw new HttpError('limit_reached', 'The body of an invoke names no run and step.');
  if ((await jsonTextWithin([step, envelope.headers], MAX_ASKED)) === undefined)
    throw new HttpError(
      'limit_reached',
      `The step and the headers of an invoke are larger than ${MAX_ASKED}.`,
    );
  const payload =
    typeof body === 'string' ? body : body === undefined || body === null ? '' : await jsonText(body);
  const createdMs = Number(workflowRunCreatedAt);
  return {
    kind: 'invoke',
    runId: workflowRunId,
    createdMs: Number.isSafeInteger(createdMs) && createdMs > 0 ? createdMs : undefined,
    place: placeOf(step as Record<string, unknown>),
    step: step as Record<string, unknown>,
    trigger: readTrigger(publish, headers, Buffer.from(payload), environment),
    asked: askedOfLists(envelope.headers, environment),
    body: publish.body,
  };
}

/** What a request asks of a run that is made of another one. */
export interface Overrides {
  readonly asked: AskedDelivery;
  readonly labels: readonly string[];
  readonly delayMs: number;
  /** `null`: as it was. */
  readonly failure: RunSettings['failure'];
}

/** @throws HttpError 400, 412 */
export function readOverrides(headers: IncomingHttpHeaders, environment: PublishEnvironment): Overrides {
  for (const name of ['Workflow-RunId', 'Workflow-Url'])
    if (['upstash', 'service'].some((prefix) => headers[`${prefix}-${name.toLowerCase()}`] !== undefined))
      throw new HttpError(
        'limit_reached',
        `A run that goes on or starts anew has an id of its own and the URL that it had: Upstash-${name} cannot be had.`,
      );
  const { own, failure } = readRunHeaders({ ...headers, 'upstash-workflow-runid': 'none' });
  const options = optionsOf(own, environment);
  return {
    asked: askedOf(options, own),
    labels: options.labels,
    delayMs: options.delayMs,
    failure: readFailure(failure, deliveryOf(options), environment),
  };
}

/** What headers in a body ask (`{name: [value]}`) that stand for those of a later request. */
export function askedOfLists(lists: unknown, environment: PublishEnvironment): AskedDelivery {
  const headers: IncomingHttpHeaders = Object.create(null);
  for (const [name, value] of Object.entries((lists ?? {}) as Record<string, unknown>))
    headers[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : String(value);
  headers['upstash-workflow-runid'] ??= 'none';
  const { own } = readRunHeaders(headers);
  return askedDelivery(own, environment, own);
}

function optionsOf(
  headers: IncomingHttpHeaders,
  environment: PublishEnvironment,
  body: IncomingHttpHeaders = {},
): PublishOptions {
  const controls = new Controls(headers, new Map());
  for (const name of ['cron', 'queue-name', 'schedule-id'])
    if (controls.has(name)) throw controls.refusal(name, 'cannot be had for a message of a workflow run');
  return readPublishOptions(controls, body, environment);
}

const SAID: readonly (readonly [control: string, key: keyof Delivery])[] = [
  ['retries', 'maxRetries'],
  ['timeout', 'timeoutMs'],
  ['retry-delay', 'retryDelay'],
  ['flow-control-key', 'flow'],
  ['redact-fields', 'redact'],
];

export function askedDelivery(
  headers: IncomingHttpHeaders,
  environment: PublishEnvironment,
  body: IncomingHttpHeaders = {},
): AskedDelivery {
  return askedOf(optionsOf(headers, environment, body), headers);
}

function askedOf(options: PublishOptions, headers: IncomingHttpHeaders): AskedDelivery {
  const delivery = deliveryOf(options);
  const said = SAID.filter(([control]) => headers[`upstash-${control}`] !== undefined);
  return { delivery, said: said.map(([, key]) => key) };
}

function deliveryOf({ headers, maxRetries, timeoutMs, retryDelay, flow, redact }: PublishOptions): Delivery {
  return {
    headers: ownHeaders(headers),
    maxRetries,
    timeoutMs,
    ...(retryDelay === undefined ? {} : { retryDelay }),
    ...(flow === undefined ? {} : { flow }),
    ...(redact === undefined ? {} : { redact }),
  };
}

/**
 * Without what says how Portico is to treat a message: users forward all headers of a request that was itself a delivery,
 * and what then came twice (`true, true`) was taken for something else.
 */
function ownHeaders(headers: HeaderMap): HeaderMap {
  const kept = Object.entries(headers).filter(
    ([name]) =>
      !/^(Upstash|Service)-/.test(name) ||
      /^Upstash-Workflow-(Invoke-Count|Callback|Stepid|Stepname|Steptype|Concurrent|Contenttype)$/.test(name),
  );
  return Object.fromEntries(kept);
}

const addressOf = ({ runId, createdMs }: RunHeaders) => ({ runId, createdMs });

async function jsonObject(body: Buffer): Promise<Record<string, unknown>> {
  let value: unknown;
  try {
    value = await parseJsonBody(body);
  } catch {
    // refused below
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new HttpError('limit_reached', 'The body of a step is no JSON object.');
}

/** @throws HttpError 412 */
export function placeOf(step: Readonly<Record<string, unknown>>): StepPlace {
  const { stepId, targetStep, concurrent = 1, stepName, stepType } = step;
  const isCounted = isCount(stepId) && isCount(targetStep ?? 0) && isCount(concurrent);
  if (!isCounted || typeof stepName !== 'string' || typeof stepType !== 'string')
    throw new HttpError('limit_reached', 'A step has stepId, stepName, stepType and concurrent.');
  const target = (targetStep as number | null | undefined) || null;
  if (stepId === 0 && target === null)
    throw new HttpError('limit_reached', `Step ${INITIAL.stepId} is the start of the run.`);
  return {
    stepId: stepId as number,
    targetStep: stepId === 0 ? target : null,
    concurrent: concurrent as number,
    name: columnText(stepName, 1_000),
    type: columnText(stepType, 100),
  };
}

/** The body has it whole; Postgres' texts hold no NUL and no half of a surrogate pair, which may be what a cut leaves. */
const columnText = (text: string, most: number) => text.slice(0, most).toWellFormed().replaceAll('\0', '');

/** Postgres' `int`. */
const isCount = (value: unknown) =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 31;
