import { HttpError } from '../../../http/errors.js';
import type { RawReply, RawRequest, RawRoute, RouteContext } from '../../../http/route.js';
import type { QueueDeps } from '../deps.js';
import { acceptMessages } from '../intake/accept.js';
import {
  type AddressedMessages,
  addressedMessages,
  type PublishRequest,
} from '../intake/addressed-messages.js';
import { asText, Controls } from '../intake/control-headers.js';
import { cutTarget } from '../intake/destination.js';
import { anyBody, publishHeaders, publishReply } from '../schemas.js';
import { checkName } from '../store/names.js';
import type { RunAnswer } from '../workflow/run-batches.js';
import { namesRun } from '../workflow/run-headers.js';
import { createSchedule } from './schedule-requests.js';

const ERRORS = [400, 401, 403, 404, 412, 413, 429, 503];

/** A publish as it stands in the path of a request. */
export function requestOf(
  { target, headers, body }: RawRequest,
  { clientAddress: callerIp }: RouteContext,
): PublishRequest {
  const { destination, settings } = cutTarget(target);
  return {
    destination,
    settings,
    headers: asText(headers),
    body,
    callerIp,
  };
}

/** What a publish is answered: one object for a URL, an array for a URL group. */
export interface PublishAnswer {
  readonly status: 200 | 202;
  readonly reply: PublishedMessage | PublishedMessage[];
}

interface PublishedMessage {
  readonly messageId: string;
  readonly url: string;
  readonly deduplicated?: true;
}

/** Accepts what several publishes addressed, all or none, in their order. @throws HttpError 429, 503 */
export async function acceptAll(
  publishes: readonly AddressedMessages[],
  deps: QueueDeps,
): Promise<PublishAnswer[]> {
  const all = publishes.flatMap(({ messages }) => messages);
  await deps.usage.take(all.length);
  const stored = await acceptMessages(all, deps.accept).catch(async (error: unknown) => {
    await deps.usage.giveBack(all.length);
    throw error;
  });
  await deps.usage.giveBack(stored.filter(({ deduplicated }) => deduplicated).length);
  const published = all.map(({ id, url }, i): PublishedMessage => {
    const { messageId, deduplicated } = stored[i] ?? { messageId: id, deduplicated: false };
    return { messageId, url, ...(deduplicated ? { deduplicated: true as const } : {}) };
  });
  return publishes.map(({ messages, isGroup }) => {
    const entries = published.splice(0, messages.length);
    const repeated = entries.length > 0 && entries.every(({ deduplicated }) => deduplicated === true);
    return { status: repeated ? 202 : 200, reply: isGroup ? entries : (entries[0] as PublishedMessage) };
  });
}

async function publish(request: PublishRequest, deps: QueueDeps): Promise<RawReply> {
  const addressed = await addressedMessages(request, deps);
  const [answer] = await acceptAll([addressed], deps);
  return { status: answer?.status ?? 200, body: JSON.stringify(answer?.reply) };
}

/** A message of a workflow run, which its instructions name. */
async function publishToRun(request: PublishRequest, { workflow }: QueueDeps): Promise<RawReply> {
  const headers = { ...request.headers };
  for (const [name, value] of request.settings) headers[name] ??= value;
  const [answer] = await workflow.runs.accept([{ ...request, headers }]);
  return { status: 200, body: JSON.stringify(answer && runAnswerView(answer, request.destination)) };
}

/** As a publish is answered, and which run it is. */
export function runAnswerView(
  { messageId, runId, createdMs, deduplicated }: RunAnswer,
  url: string,
): Record<string, unknown> {
  return {
    messageId,
    url,
    workflowRunId: runId,
    workflowCreatedAt: createdMs,
    ...(deduplicated ? { deduplicated } : {}),
  };
}

const publishRoute: RawRoute<QueueDeps> = {
  kind: 'raw',
  prefix: true,
  operationId: 'queue.publish',
  keepsEncoding: true,
  summary:
    'Takes a message for the URL or URL group in the path and delivers it at least once. Answers when the message is safe in Postgres and RabbitMQ.',
  methods: ['POST'],
  changesData: true,
  path: '/v2/publish',
  documentedPath: '/v2/publish/*destination',
  request: { headers: publishHeaders, body: anyBody },
  reply: publishReply,
  errors: ERRORS,
  handle: (request, context, deps) => {
    const wanted = requestOf(request, context);
    if (namesRun(Object.keys(wanted.headers)) || namesRun(wanted.settings.keys()))
      return publishToRun(wanted, deps);
    // an older spelling of a schedule
    if (new Controls(wanted.headers, wanted.settings).has('cron')) return createSchedule(wanted, deps);
    return publish(wanted, deps);
  },
};

const enqueueRoute: RawRoute<QueueDeps> = {
  kind: 'raw',
  prefix: true,
  operationId: 'queue.enqueue',
  keepsEncoding: true,
  summary:
    'The same through a queue that keeps the order: a message begins when the one before it and its callbacks are done. Makes the queue if need be.',
  methods: ['POST'],
  changesData: true,
  path: '/v2/enqueue',
  documentedPath: '/v2/enqueue/:queue/*destination',
  request: { headers: publishHeaders, body: anyBody },
  reply: publishReply,
  errors: ERRORS,
  handle: (request, context, deps) => {
    const [, queueName, rest] = /^\/([^/?]*)(.*)$/s.exec(request.target) ?? [];
    if (queueName === undefined || rest === undefined)
      throw new HttpError('invalid_request', 'The queue is missing: /v2/enqueue/{queue}/{destination}.');
    checkName(queueName, 'queue');
    return publish({ ...requestOf({ ...request, target: rest }, context), queueName }, deps);
  },
};

export const publishRoutes = [publishRoute, enqueueRoute] as const;
