import { retryAfterMs } from './retry-after.js';
import { retryDelayMs } from './retry-delay.js';

/** What became of one attempt to deliver. */
export type AttemptResult =
  | {
      readonly kind: 'response';
      readonly status: number;
      /** Names in lower case. */
      readonly headers: Readonly<Record<string, readonly string[]>>;
      readonly body: Buffer;
      /** Why it is taken for a failure though its status is good: told in place of the body, beside which the log has it. */
      readonly refusal?: string;
      /** There was more of it. */
      readonly isCut?: boolean;
      /** To be called once, when the body is done with: it makes room for others'. */
      readonly release?: () => void;
    }
  /** No response: refused, reset, unknown host, blocked address, timeout. */
  | { readonly kind: 'failure'; readonly reason: string };

/** What follows from it. */
export type Decision =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'retry'; readonly delayMs: number }
  | { readonly kind: 'dead' };

/** No pause between attempts is longer, in seconds. */
const MAX_BACKOFF_S = 86_400;

/** Only together with the header below does this status end the message. */
const NON_RETRYABLE_STATUS = 489;
const NON_RETRYABLE_HEADERS = ['upstash-nonretryable-error', 'service-nonretryable-error'];

/**
 * Decides an attempt: 2xx is success, everything else (redirects too: they are not followed) a failure, which is
 * repeated until the retries are used up. The destination may name the pause or end the message.
 * @param attempt `retried`: how often the message was retried before; `retryDelay`: the sender's expression for the
 *   pause, which what the destination says overrules
 * @param now Unix time in ms
 */
export function decide(
  attempt: {
    readonly retried: number;
    readonly maxRetries: number;
    readonly retryDelay?: string | undefined;
    readonly result: AttemptResult;
  },
  now: number,
): Decision {
  const { retried, maxRetries, retryDelay, result } = attempt;
  if (result.kind === 'response' && result.status >= 200 && result.status < 300) return { kind: 'delivered' };
  if (retried >= maxRetries || isNonRetryable(result)) return { kind: 'dead' };
  const asked = result.kind === 'response' ? retryAfterMs(result.headers, now) : undefined;
  const wanted = retryDelay === undefined ? undefined : retryDelayMs(retryDelay, retried);
  return { kind: 'retry', delayMs: asked ?? wanted ?? defaultBackoffMs(retried + 1) };
}

/** Pause in ms before retry `retry` (1 is the first): e^(2.5 n) seconds, that is 12 s, 148 s, 30 min, 6 h, then a day each. */
export function defaultBackoffMs(retry: number): number {
  return Math.round(Math.min(MAX_BACKOFF_S, Math.exp(2.5 * retry)) * 1_000);
}

function isNonRetryable(result: AttemptResult): boolean {
  return (
    result.kind === 'response' &&
    result.status === NON_RETRYABLE_STATUS &&
    NON_RETRYABLE_HEADERS.some((name) => result.headers[name]?.[0]?.trim().toLowerCase() === 'true')
  );
}
