import { responseOf } from '../message/callbacks.js';
import type { AttemptResult } from '../message/decide.js';
import { type ClaimedMessage, canonicalHeaders } from '../message/message.js';
import type { Run } from './run.js';

/**
 * What is told of a run that failed.
 * @param message whose retries are used up, with its last `result`
 * @param payload of the run's start
 */
export function failureBody(
  run: Run,
  message: ClaimedMessage,
  result: AttemptResult,
  dlqId: string,
  payload: Buffer,
): Buffer {
  const { status, headers, body } = responseOf(result);
  return Buffer.from(
    JSON.stringify({
      status,
      header: canonicalHeaders(headers),
      body: body.toString('base64'),
      retried: message.attempt,
      maxRetries: message.maxRetries,
      dlqId,
      sourceMessageId: message.id,
      url: run.url,
      method: message.method,
      sourceHeader: Object.fromEntries(
        Object.entries(message.headers).map(([name, value]) => [name, [value]]),
      ),
      sourceBody: payload.toString('base64'),
      workflowRunId: run.id,
      workflowCreatedAt: run.createdMs,
      createdAt: message.createdAt,
    }),
  );
}
