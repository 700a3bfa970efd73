import fc from 'fast-check';
import { backoffDelay } from '../../../src/lib/backoff.js';

it('grows by the factor up to the longest pause, less at most the jitter', () => {
  const options = { initialMs: 100, maxMs: 5_000, factor: 2, jitter: 0.2 };
  fc.assert(
    fc.property(
      fc.nat(2_000),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (attempt, random) => {
        const full = Math.min(5_000, 100 * 2 ** attempt);
        const delay = backoffDelay(attempt, options, random);
        expect(delay).toBeLessThanOrEqual(full);
        expect(delay).toBeGreaterThanOrEqual(Math.floor(full * 0.8));
      },
    ),
  );
});
