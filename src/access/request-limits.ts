import { type RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible';
import { HttpError } from '../http/errors.js';
import type { Allowance, RequestLimits } from '../http/route.js';
import type { AccessStore } from './access-store.js';
import type { StoredToken } from './token.js';

const DAY_S = 86_400;

/** One bound that a request counts against. */
interface Window {
  readonly name: string;
  readonly requests: number;
  readonly limiter: RateLimiterAbstract;
  /** Of the window that `now` (ms since 1970) is in. */
  key(now: number): string;
  /** @param msBeforeNext what the counter says */
  endsInMs(now: number, msBeforeNext: number): number;
}

/**
 * Rate and quota of one token, over all gateways. While the store of the counts does not answer, each process counts by itself.
 * @returns `undefined` for a token without either
 */
export function requestLimits(
  { id, record: { rateLimit, quota } }: StoredToken,
  store: AccessStore,
  now: () => number,
): RequestLimits | undefined {
  const windows: Window[] = [];
  if (rateLimit !== undefined)
    windows.push({
      name: 'rate limit',
      requests: rateLimit.requests,
      limiter: store.limiter(rateLimit.requests, rateLimit.seconds),
      key: () => `${id}:rate`,
      endsInMs: (_, msBeforeNext) => msBeforeNext,
    });
  if (quota !== undefined) {
    const length = quota.per === 'day' ? 10 : 7;
    windows.push({
      name: `quota of the ${quota.per}`,
      requests: quota.requests,
      // the key changes with the day or month; the count outlives it a little
      limiter: store.limiter(quota.requests, (quota.per === 'day' ? 2 : 33) * DAY_S),
      key: (at) => `${id}:${new Date(at).toISOString().slice(0, length)}`,
      endsInMs: (at) => endOf(at, quota.per) - at,
    });
  }
  return windows.length === 0 ? undefined : { take: () => take(windows, now()) };
}

/** Midnight, UTC. */
function endOf(at: number, per: 'day' | 'month'): number {
  const date = new Date(at);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  return per === 'day' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1, 1);
}

/** The first that is used up refuses; what comes behind it is not counted. */
async function take(windows: readonly Window[], now: number): Promise<Allowance> {
  let tightest: { readonly remaining: number; readonly headers: Record<string, string> } | undefined;
  for (const window of windows) {
    const { isOver, remaining, resetS } = await consume(window, now);
    const headers = headersOf(window.requests, remaining, resetS);
    if (isOver)
      return {
        headers: {},
        refusal: new HttpError('too_many_requests', `The ${window.name} of this token is used up.`, {
          retryAfter: resetS,
          headers,
        }),
      };
    if (tightest === undefined || remaining < tightest.remaining) tightest = { remaining, headers };
  }
  return { refusal: undefined, headers: tightest?.headers ?? {} };
}

async function consume(window: Window, now: number) {
  const result = await window.limiter.consume(window.key(now)).then(
    (res) => ({ res, isOver: false }),
    (error: unknown) => {
      // it rejects with the count of a key that is over its limit
      if (error instanceof RateLimiterRes) return { res: error, isOver: true };
      throw error;
    },
  );
  const endsInMs = window.endsInMs(now, result.res.msBeforeNext);
  return {
    isOver: result.isOver,
    remaining: Math.max(0, result.res.remainingPoints),
    resetS: Math.max(1, Math.ceil(endsInMs / 1_000)),
  };
}

/** draft-ietf-httpapi-ratelimit-headers-06: what clients read today. */
function headersOf(limit: number, remaining: number, resetS: number): Record<string, string> {
  return {
    'RateLimit-Limit': String(limit),
    'RateLimit-Remaining': String(remaining),
    'RateLimit-Reset': String(resetS),
  };
}
