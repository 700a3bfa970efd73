import type { IncomingHttpHeaders } from 'node:http';
import { HttpError } from '../../../http/errors.js';
import type { QueueDeps } from '../deps.js';
import { unavailable } from '../errors.js';
import { type ClaimedMessage, type NewMessage, newMessageId } from '../message/message.js';
import { CONFIRM_MS } from '../rabbitmq/publisher.js';
import { detailsOf } from './addressed-messages.js';
import { Controls } from './control-headers.js';
import { takeInWith } from './intake.js';
import { type PublishEnvironment, readPublishOptions } from './publish-options.js';

/** After this, in ms, no further dead letters are begun: the reply that names the new messages must be in time. */
const MAX_RESEND_MS = 5_000;

export interface Resent {
  /** Of the new messages. */
  readonly ids: readonly string[];
  /** Whether time sufficed for all pieces. */
  readonly isWhole: boolean;
}

/**
 * Sends dead letters again: entries out, new messages in, in one transaction. Once that is committed the messages are
 * accepted; a ticket that RabbitMQ does not confirm then comes from the sweeper.
 * @param letters not more of them than Postgres takes in time
 * @returns ids of the new messages
 */
export async function resendDeadLetters(
  letters: readonly string[],
  headers: IncomingHttpHeaders,
  { accept, config, guard, now, deadLetters, usage, log }: QueueDeps,
): Promise<string[]> {
  const reason = accept.publisher.unavailable;
  if (reason !== undefined) throw new HttpError('backend_unavailable', `${reason}.`);
  const environment = { limits: config, guard, now: now() };
  const { messages, intake } = await accept.database
    .transaction(async (connection) => {
      const dead = await deadLetters.take(connection, letters);
      const messages = dead.map((message) => resentMessage(message, headers, new Map(), environment));
      const intake = await takeInWith(connection, messages, accept);
      return { messages, intake };
    })
    .catch((error: unknown) => {
      throw unavailable(error);
    });
  const { publisher, onAccepted, heldMessages } = accept;
  heldMessages.begin(intake.waiting);
  try {
    await Promise.all(
      intake.tickets.map((ticket) => publisher.publish(ticket, ticket.delayMs, CONFIRM_MS.whileClientWaits)),
    );
  } catch (err) {
    log.warn({ err, messages: messages.length }, 'queue: dead letters wait for the sweeper');
  }
  onAccepted(messages.length);
  await usage.charge(messages.length);
  return messages.map(({ id }) => id);
}

/** As many as there is time for. What fails after some were sent is told by `isWhole`: the reply has to name those. */
export async function resendInTime(
  pieces: readonly (readonly string[])[],
  headers: IncomingHttpHeaders,
  deps: QueueDeps,
): Promise<Resent> {
  const started = performance.now();
  const ids: string[] = [];
  for (const piece of pieces) {
    if (performance.now() - started > MAX_RESEND_MS) return { ids, isWhole: false };
    try {
      ids.push(...(await resendDeadLetters(piece, headers, deps)));
    } catch (error) {
      if (ids.length === 0) throw error;
      deps.log.warn({ err: error, sent: ids.length }, 'queue: not all dead letters were sent again');
      return { ids, isWhole: false };
    }
  }
  return { ids, isWhole: true };
}

/**
 * A dead message as a new one, with what the request says otherwise: its instructions override the message's own,
 * forwarded headers are added.
 * @throws HttpError 400
 */
function resentMessage(
  dead: ClaimedMessage,
  headers: IncomingHttpHeaders,
  settings: ReadonlyMap<string, string>,
  environment: PublishEnvironment,
): NewMessage {
  const { now } = environment;
  const controls = new Controls(headers, settings);
  // the request's own headers are about its (empty) body
  const asked = readPublishOptions(controls, {}, environment);
  const said = (name: string) => controls.has(name);
  const { topicName, endpointName, scheduleId, labels = [], flow, retryDelay, redact } = dead.details;
  const options = {
    ...asked,
    retryDelay: said('retry-delay') ? asked.retryDelay : retryDelay,
    labels: said('label') ? asked.labels : labels,
    flow: said('flow-control-key') ? asked.flow : flow,
    redact: said('redact-fields') ? asked.redact : redact,
  };
  const delayMs = asked.delayMs;
  return {
    id: newMessageId(now),
    prefix: dead.prefix,
    url: dead.url,
    method: said('method') ? asked.method : dead.method,
    headers: { ...dead.headers, ...asked.headers },
    body: dead.body,
    maxRetries: said('retries') ? asked.maxRetries : dead.maxRetries,
    timeoutMs: said('timeout') ? asked.timeoutMs : dead.timeoutMs,
    notBefore: now + delayMs,
    createdAt: now,
    callback: said('callback') ? asked.callback : dead.callback,
    failureCallback: said('failure-callback') ? asked.failureCallback : dead.failureCallback,
    queueName: dead.callbackOf === null ? dead.queueName : null,
    callerIp: dead.callerIp,
    callbackOf: null,
    details: detailsOf(options, topicName, endpointName, scheduleId),
    delayMs,
    deduplicationKey: null,
  };
}
