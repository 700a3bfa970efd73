import type { IncomingHttpHeaders } from 'node:http';
import { type ClaimedMessage, type NewMessage, newMessageId } from '../message/message.js';
import { detailsOf } from './addressed-messages.js';
import { Controls } from './control-headers.js';
import { type PublishEnvironment, readPublishOptions } from './publish-options.js';

/**
 * A dead message as a new one, with what the request says otherwise: its instructions override the message's own,
 * forwarded headers are added.
 * @throws HttpError 400
 */
export function resentMessage(
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
