import { isUtf8 } from 'node:buffer';
import { redacted, shownHeaders } from '../intake/redaction.js';
import type { CallbackTarget, Message, Redaction } from '../message/message.js';

/** What the API shows of a message. Absent fields are left out: some clients take a null for a value. */
export function messageView(message: Message): Record<string, unknown> {
  const { details, callback, failureCallback, queueName, callerIp } = message;
  const { topicName, endpointName, scheduleId, labels, flow, retryDelay, redact } = details;
  return present({
    messageId: message.id,
    url: message.url,
    topicName,
    endpointName,
    method: message.method,
    header: shownHeaders(message.headers, redact),
    ...bodyView('body', message.body, redact?.body === true),
    maxRetries: message.maxRetries,
    notBefore: message.notBefore,
    createdAt: message.createdAt,
    ...callbackView('callback', callback, redact),
    ...callbackView('failureCallback', failureCallback, redact),
    queueName: queueName ?? undefined,
    scheduleId,
    callerIP: callerIp ?? undefined,
    callerIp: callerIp ?? undefined,
    label: labels?.[0],
    labels,
    flowControlKey: flow?.key,
    parallelism: flow?.parallelism ?? undefined,
    rate: flow?.rate ?? undefined,
    period: flow?.period,
    retryDelayExpression: retryDelay,
  });
}

/** `name` with text, or `nameBase64` where the bytes are none. */
export function bodyView(name: string, body: Buffer, hidden = false): Record<string, string> {
  if (hidden) return { [name]: redacted(body) };
  if (body.length === 0) return {};
  return isUtf8(body) ? { [name]: body.toString('utf8') } : { [`${name}Base64`]: body.toString('base64') };
}

function callbackView(
  name: string,
  target: CallbackTarget | null,
  redact: Redaction | undefined,
): Record<string, unknown> {
  if (target === null) return {};
  return { [name]: target.url, [`${name}Header`]: shownHeaders(target.headers, redact) };
}

/** Without the fields that are `undefined`. */
export function present(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
