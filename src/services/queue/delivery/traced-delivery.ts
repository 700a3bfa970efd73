import { type Tracer, wordOf } from '../../../lib/traces/tracer.js';
import type { AttemptResult } from '../message/decide.js';
import type { ClaimedMessage } from '../message/message.js';

/** Makes an attempt in a span of the trace that its message came with; the destination gets that span as its `traceparent`. */
export async function tracedDelivery(
  tracer: Tracer,
  message: ClaimedMessage,
  attempt: (message: ClaimedMessage) => Promise<AttemptResult>,
): Promise<AttemptResult> {
  const given = Object.entries(message.headers).find(([name]) => /^traceparent$/i.test(name));
  const span = tracer.root('queue.deliver', 'client', given?.[1]);
  if (span === undefined) return attempt(message);
  Object.assign(span.attributes, {
    'messaging.system': 'portico',
    'messaging.message.id': message.id,
    'http.request.method': message.method,
    'http.request.resend_count': message.attempt,
    'server.address': new URL(message.url).hostname,
  });
  const headers = { ...message.headers, [given?.[0] ?? 'Traceparent']: span.traceparent };
  try {
    const result = await span.run(() => attempt({ ...message, headers }));
    if (result.kind === 'response') span.attributes['http.response.status_code'] = result.status;
    if (result.kind === 'failure' || result.status >= 400)
      span.error = result.kind === 'failure' ? 'no response' : String(result.status);
    return result;
  } catch (error) {
    span.error = wordOf(error);
    throw error;
  } finally {
    span.end();
  }
}
