import fc from 'fast-check';
import { retryDelayMs, retryDelayProblem } from '../../../src/services/queue/message/retry-delay.js';

it.each([
  ['1000', 3, 1_000],
  ['retried * 1000', 2, 2_000],
  ['(1 + retried) * 250', 0, 250],
  ['1000 * (1 + retried) - 500 / 2', 1, 1_750],
  ['pow(2, retried) * 1000', 3, 8_000],
  ['min(5000, exp(retried) * 100)', 10, 5_000],
  ['max(1, 2, 3)', 0, 3],
  ['round(1.4) + ceil(1.2) + floor(1.9) + abs(-2) + sqrt(9)', 0, 9],
  ['-5 + 2 - -4', 0, 1],
  ['8 / 2 / 2', 0, 2],
  ['2e3', 0, 2_000],
  ['-100', 0, 0],
  ['exp(100)', 0, 86_400_000],
  ['1 / 0', 0, 86_400_000],
])('%s after %i retries is %i ms', (expression, retried, ms) => {
  expect(retryDelayProblem(expression)).toBeUndefined();
  expect(retryDelayMs(expression, retried)).toBe(ms);
});

it('says nothing where there is no number', () => {
  expect(retryDelayMs('0 / 0', 0)).toBeUndefined();
  expect(retryDelayMs('sqrt(-1)', 0)).toBeUndefined();
});

it.each([
  ['', /ends too early/],
  ['1 +', /ends too early/],
  ['(1', /lacks a "\)"/],
  ['1)', /has "\)" where its end/],
  ['1 2', /has "2" where its end/],
  ['process.exit()', /"process"|not understood/],
  ['constructor(1)', /"constructor"/],
  ['pow(2)', /pow with 1 arguments/],
  ['retries', /"retries"/],
  ['1; 2', /character 2/],
  ['('.repeat(600), /longer than 500/],
])('refuses %s', (expression, reason) => {
  expect(retryDelayProblem(expression)).toMatch(reason);
});

it('agrees with JavaScript on plain arithmetic', () => {
  const number = fc.integer({ min: 1, max: 999 }).map(String);
  const { expression } = fc.letrec((tie) => ({
    expression: fc.oneof(
      { maxDepth: 4 },
      number,
      fc.constant('retried'),
      fc
        .tuple(tie('expression'), fc.constantFrom('+', '-', '*', '/'), tie('expression'))
        .map(([a, operator, b]) => `(${a as string} ${operator} ${b as string})`),
    ),
  }));
  fc.assert(
    fc.property(expression, fc.nat(20), (text, retried) => {
      const expected = new Function('retried', `return ${text as string}`)(retried) as number;
      const ms = retryDelayMs(text as string, retried);
      if (Number.isNaN(expected)) expect(ms).toBeUndefined();
      else expect(ms).toBe(Math.round(Math.min(86_400_000, Math.max(0, expected))));
    }),
  );
});

it('never throws anything but its own words', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 60 }), (text) => {
      const problem = retryDelayProblem(text);
      if (problem === undefined)
        expect([undefined, expect.any(Number)]).toContainEqual(retryDelayMs(text, 1));
    }),
  );
});
