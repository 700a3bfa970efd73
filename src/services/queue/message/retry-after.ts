/** Response headers by which a destination says when it may be called again, in the order in which they are believed. */
const HEADERS = [
  'retry-after',
  'x-ratelimit-reset',
  'x-ratelimit-reset-requests',
  'x-ratelimit-reset-tokens',
];

/** From here on a number of `X-RateLimit-Reset*` is a Unix time: GitHub and others send seconds, some milliseconds. */
const UNIX_S = 1e9;
const UNIX_MS = 1e12;

/** A longer wait than a day is not believed. */
const MAX_MS = 86_400_000;

const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};
const PART = /(\d+(?:\.\d+)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/y;

/**
 * The wait in ms that a response asks for: seconds (`120`), an HTTP date or a Go duration (`6m5s`, `250ms`);
 * of `X-RateLimit-Reset*` a Unix time too.
 * `undefined` when it asks for none, for more than a day, or in words that are none of these.
 * @param now Unix time in ms
 */
export function retryAfterMs(
  headers: Readonly<Record<string, readonly string[]>>,
  now: number,
): number | undefined {
  for (const name of HEADERS) {
    const value = headers[name]?.[0]?.trim();
    const ms = value === undefined ? undefined : (untilUnixTime(name, value, now) ?? waitOf(value, now));
    if (ms !== undefined && ms <= MAX_MS) return Math.ceil(ms);
  }
  return undefined;
}

function untilUnixTime(name: string, value: string, now: number): number | undefined {
  if (name === 'retry-after' || !/^\d{10,15}(\.\d+)?$/.test(value)) return undefined;
  const time = Number(value);
  if (time < UNIX_S) return undefined;
  return Math.max(0, (time >= UNIX_MS ? time : time * 1_000) - now);
}

function waitOf(value: string, now: number): number | undefined {
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1_000;
  const duration = goDuration(value);
  if (duration !== undefined) return duration;
  // Date.parse takes many spellings; only an HTTP date begins with a day's name
  const date = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

function goDuration(value: string): number | undefined {
  if (value === '') return undefined;
  let total = 0;
  PART.lastIndex = 0;
  while (PART.lastIndex < value.length) {
    const part = PART.exec(value);
    if (part === null) return undefined;
    total += Number(part[1]) * (UNIT_MS[part[2] as string] as number);
  }
  return total;
}
