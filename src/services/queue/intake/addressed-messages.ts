import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { HttpError } from '../../../http/errors.js';
import { type MessageDetails, type NewMessage, newMessageId } from '../message/message.js';
import type { QueueSettings } from '../settings.js';
import { checkName, isName } from '../store/names.js';
import type { Endpoint, UrlGroups } from '../store/url-groups.js';
import { Controls } from './control-headers.js';
import { checkDestination, type Guard } from './destination.js';
import { type PublishOptions, readPublishOptions } from './publish-options.js';
import { refuseWorkflows } from './workflow-headers.js';

/** Language models and e-mail that the hosted service calls by a name of its own. */
const HOSTED_API = /^api\/(llm|email)(\/|$)/i;

/** One publish, however it came: by path, in a batch, from a schedule. */
export interface PublishRequest {
  /** A URL as it is to be signed, or the name of a URL group. */
  readonly destination: string;
  readonly headers: IncomingHttpHeaders;
  /** Instructions that came as query keys. */
  readonly settings: ReadonlyMap<string, string>;
  readonly body: Buffer;
  readonly callerIp: string | null;
  readonly queueName?: string;
  readonly scheduleId?: string;
  /** It is the making of a schedule, so it has a cron expression. */
  readonly isSchedule?: boolean;
}

export interface AddressedMessages {
  /** One for each endpoint. */
  readonly messages: readonly NewMessage[];
  readonly isGroup: boolean;
}

export interface AddressTools {
  readonly config: QueueSettings;
  readonly guard: Guard;
  readonly groups: UrlGroups;
  /** Unix time in ms. */
  readonly now: () => number;
}

/** Reads a publish. @throws HttpError 400, 404 (no such URL group), 413 */
export async function addressedMessages(
  request: PublishRequest,
  tools: AddressTools,
): Promise<AddressedMessages> {
  const { config, guard, groups } = tools;
  const { destination, body } = request;
  refuseWorkflows(Object.keys(request.headers));
  refuseWorkflows(request.settings.keys());
  if (body.length > config.maxMessageSize)
    throw new HttpError(
      'payload_too_large',
      `The body is larger than the limit of ${config.maxMessageSize} bytes (maxMessageSize).`,
    );
  if (destination === '') throw new HttpError('invalid_request', 'The destination is missing.');
  refuseHostedApi(destination);
  if (!isName(destination)) {
    checkDestination(destination, 'The destination', guard);
    return { messages: [messageTo({ url: destination }, request, undefined, {}, tools)], isGroup: false };
  }
  const group = await groups.find(destination);
  if (group === undefined)
    throw new HttpError(
      'not_found',
      `${destination} is neither a URL (http:// or https://) nor a known URL group.`,
    );
  const messages = group.endpoints.map((endpoint) => {
    checkDestination(endpoint.url, `An endpoint of ${destination}`, guard);
    return messageTo(endpoint, request, destination, group.headers, tools);
  });
  return { messages, isGroup: true };
}

/** @throws HttpError 412 for a destination that only the hosted service has */
function refuseHostedApi(destination: string): void {
  if (HOSTED_API.test(destination))
    throw new HttpError(
      'not_served',
      `${destination} is an API of the hosted service; publish to the provider's own URL, with its key in Upstash-Forward-Authorization.`,
    );
}

function messageTo(
  endpoint: Endpoint,
  request: PublishRequest,
  topicName: string | undefined,
  defaults: Readonly<Record<string, string>>,
  { config, guard, now: clock }: AddressTools,
): NewMessage {
  const controls = new Controls(request.headers, request.settings, defaults);
  if (controls.has('cron') && request.isSchedule !== true)
    throw controls.refusal('cron', 'makes no schedule here; that is POST /v2/schedules/{destination}');
  const now = clock();
  const options = readPublishOptions(controls, request.headers, { limits: config, guard, now });
  const queueName = request.queueName ?? controls.get('queue-name') ?? null;
  if (queueName !== null) checkOrdered(queueName, options);
  const { delayMs, method, headers, maxRetries, timeoutMs, callback, failureCallback } = options;
  return {
    id: newMessageId(now),
    prefix: controls.prefix ?? config.headerPrefix,
    url: endpoint.url,
    method,
    headers,
    body: request.body,
    maxRetries,
    timeoutMs,
    notBefore: now + delayMs,
    createdAt: now,
    callback,
    failureCallback,
    queueName,
    callerIp: request.callerIp,
    callbackOf: null,
    details: detailsOf(options, topicName, endpoint.name, request.scheduleId),
    delayMs,
    deduplicationKey: deduplicationKey(endpoint.url, topicName, request.body, options),
  };
}

/** A callback belongs to its message's place in the queue, which it must not keep occupied for a delay's time. */
function checkOrdered(name: string, { callback, failureCallback }: PublishOptions): void {
  checkName(name, 'queue');
  if ((callback?.delayMs ?? 0) > 0 || (failureCallback?.delayMs ?? 0) > 0)
    throw new HttpError('invalid_request', 'Callbacks of messages in a queue cannot be delayed.');
}

export function detailsOf(
  { labels, flow, retryDelay, redact }: PublishOptions,
  topicName: string | undefined,
  endpointName: string | undefined,
  scheduleId: string | undefined,
): MessageDetails {
  return {
    ...(topicName === undefined ? {} : { topicName }),
    ...(endpointName === undefined ? {} : { endpointName }),
    ...(scheduleId === undefined ? {} : { scheduleId }),
    ...(labels.length === 0 ? {} : { labels }),
    ...(flow === undefined ? {} : { flow }),
    ...(retryDelay === undefined ? {} : { retryDelay }),
    ...(redact === undefined ? {} : { redact }),
  };
}

/** Equal for messages that are the same: by the sender's id, or by destination, body and headers. In a group each endpoint has its own. */
function deduplicationKey(
  url: string,
  topicName: string | undefined,
  body: Buffer,
  { deduplication, headers }: PublishOptions,
): string | null {
  if (deduplication === undefined) return null;
  const hash = createHash('sha256').update(
    JSON.stringify([topicName === undefined ? null : [topicName, url]]),
  );
  if (deduplication !== 'content') return hash.update(`id ${deduplication.id}`).digest('hex');
  return hash
    .update(JSON.stringify([url, Object.entries(headers).sort()]))
    .update(body)
    .digest('hex');
}
