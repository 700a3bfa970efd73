import fc from 'fast-check';
import { type AttemptResult, decide, defaultBackoffMs } from '../../../src/services/queue/message/decide.js';
import { retryAfterMs } from '../../../src/services/queue/message/retry-after.js';

const NOW = Date.parse('2026-01-02T03:04:05Z');

function response(status: number, headers: Record<string, string> = {}): AttemptResult {
  const lists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
  return { kind: 'response', status, headers: lists, body: Buffer.alloc(0) };
}
const failure: AttemptResult = { kind: 'failure', reason: 'connect ECONNREFUSED' };

it('takes 2xx as delivered, whatever the number of retries', () => {
  for (const status of [200, 201, 204, 299])
    expect(decide({ retried: 9, maxRetries: 0, result: response(status) }, NOW)).toEqual({
      kind: 'delivered',
    });
});

it('retries everything else until the retries are used up, redirects and missing responses too', () => {
  const results = [
    response(301),
    response(302, { location: 'http://x/' }),
    response(404),
    response(500),
    failure,
  ];
  for (const result of results) {
    expect(decide({ retried: 0, maxRetries: 2, result }, NOW)).toEqual({ kind: 'retry', delayMs: 12_182 });
    expect(decide({ retried: 1, maxRetries: 2, result }, NOW)).toEqual({ kind: 'retry', delayMs: 148_413 });
    expect(decide({ retried: 2, maxRetries: 2, result }, NOW)).toEqual({ kind: 'dead' });
  }
});

it('gives every message exactly 1 + maxRetries attempts when all fail', () => {
  fc.assert(
    fc.property(
      fc.nat(50),
      fc.constantFrom(response(500), response(199), response(300), failure),
      (maxRetries, result) => {
        let attempts = 1;
        while (decide({ retried: attempts - 1, maxRetries, result }, NOW).kind === 'retry') attempts += 1;
        expect(attempts).toBe(1 + maxRetries);
      },
    ),
  );
});

it('backs off exponentially, at most a day', () => {
  expect([1, 2, 3, 4, 5, 1_000].map(defaultBackoffMs)).toEqual([
    12_182, 148_413, 1_808_042, 22_026_466, 86_400_000, 86_400_000,
  ]);
});

it('ends a message on 489 with the header, under either name; not without it', () => {
  const of = (headers: Record<string, string>, status = 489) =>
    decide({ retried: 0, maxRetries: 3, result: response(status, headers) }, NOW).kind;
  expect(of({ 'upstash-nonretryable-error': 'true' })).toBe('dead');
  expect(of({ 'service-nonretryable-error': 'True' })).toBe('dead');
  expect(of({})).toBe('retry');
  expect(of({ 'upstash-nonretryable-error': 'false' })).toBe('retry');
  expect(of({ 'upstash-nonretryable-error': 'true' }, 500)).toBe('retry');
});

it('waits as long as the destination asks for', () => {
  const result = response(503, { 'retry-after': '7' });
  expect(decide({ retried: 0, maxRetries: 3, result }, NOW)).toEqual({ kind: 'retry', delayMs: 7_000 });
  expect(decide({ retried: 3, maxRetries: 3, result }, NOW)).toEqual({ kind: 'dead' });
});

describe('the wait that a response asks for', () => {
  const of = (headers: Record<string, string>) =>
    retryAfterMs(Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]])), NOW);

  it.each([
    ['0', 0],
    ['120', 120_000],
    ['1.5', 1_500],
    ['6m5s', 365_000],
    ['1h2m3.5s', 3_723_500],
    ['250ms', 250],
    ['20us', 1],
    ['86400', 86_400_000],
    ['Fri, 02 Jan 2026 03:04:15 GMT', 10_000],
    ['Fri, 02 Jan 2026 03:04:00 GMT', 0],
  ])('is read from Retry-After: %s', (value, ms) => {
    expect(of({ 'retry-after': value })).toBe(ms);
  });

  it.each([
    '86401',
    '25h',
    '-1',
    'soon',
    '',
    '1d',
    '5 minutes',
    '2026-01-02',
    'Fri, 09 Jan 2026 03:04:15 GMT',
  ])('is none for %p', (value) => {
    expect(of({ 'retry-after': value })).toBeUndefined();
  });

  it('is read from the rate-limit headers when Retry-After says nothing usable', () => {
    expect(of({ 'x-ratelimit-reset': '3' })).toBe(3_000);
    expect(of({ 'x-ratelimit-reset-requests': '1m', 'x-ratelimit-reset-tokens': '2m' })).toBe(60_000);
    expect(of({ 'x-ratelimit-reset-tokens': '2s' })).toBe(2_000);
    expect(of({ 'retry-after': '4', 'x-ratelimit-reset': '3' })).toBe(4_000);
    expect(of({ 'retry-after': 'never', 'x-ratelimit-reset': '3' })).toBe(3_000);
    expect(of({})).toBeUndefined();
  });

  it('is a Unix time in the rate-limit headers, in seconds or milliseconds, where it is one', () => {
    const now = Math.floor(NOW / 1_000);
    expect(of({ 'x-ratelimit-reset': String(now + 30) })).toBe((now + 30) * 1_000 - NOW);
    expect(of({ 'x-ratelimit-reset-tokens': String(NOW + 1_500) })).toBe(1_500);
    expect(of({ 'x-ratelimit-reset': String(now - 30) })).toBe(0);
    expect(of({ 'x-ratelimit-reset': String(now + 90_000) })).toBeUndefined();
    expect(of({ 'retry-after': String(now + 30) })).toBeUndefined();
  });

  it('never throws and never exceeds a day', () => {
    fc.assert(
      fc.property(fc.string(), (value) => {
        const ms = of({ 'retry-after': value });
        expect(ms === undefined || (ms >= 0 && ms <= 86_400_000)).toBe(true);
      }),
    );
  });
});
