import { HttpError } from '../../../src/http/errors.js';
import { Quota } from '../../../src/services/broker/quota.js';

test('what is owed is waited for; what was not used is kept for a second', () => {
  let now = 0;
  const quota = new Quota({ recordsPerSecond: 10, bytesPerSecond: 1_000 }, () => now);
  quota.check();
  quota.spend(30, 10);
  const refusal = () => {
    try {
      quota.check();
      return undefined;
    } catch (error) {
      return (error as HttpError).headers['Retry-After'];
    }
  };
  expect(refusal()).toBe('2');
  now = 2_100;
  expect(refusal()).toBeUndefined();
  // an hour later there is one second's allowance
  now = 3_600_000;
  expect(refusal()).toBeUndefined();
  quota.spend(5, 3_000);
  expect(refusal()).toBe('2');
  expect(() => quota.check()).toThrow(HttpError);
});

test('without a limit there is no quota', () => {
  expect(Quota.of({ recordsPerSecond: null, bytesPerSecond: null })).toBeUndefined();
});
