import fc from 'fast-check';
import { parseDuration } from '../../../src/lib/duration.js';

it.each([
  ['0', 0],
  ['30', 30_000],
  ['500ms', 500],
  ['1d10h30m', 124_200_000],
])('reads %s', (text, ms) => expect(parseDuration(text)).toBe(ms));

it.each(['', ' ', '5 s', '-1s', '1.5h', 's', '5x', '5s!', '1e3', '99999999999999999999d'])(
  'refuses %j',
  (text) => expect(parseDuration(text)).toBeUndefined(),
);

it('adds up any parts', () => {
  const part = fc.tuple(
    fc.nat(1_000),
    fc.constantFrom(
      ['ms', 1],
      ['s', 1_000],
      ['m', 60_000],
      ['h', 3_600_000],
      ['d', 86_400_000],
      ['w', 604_800_000],
      ['mo', 2_592_000_000],
      ['y', 31_536_000_000],
    ),
  );
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 5 }), (parts) => {
      const text = parts.map(([n, [unit]]) => `${n}${unit}`).join('');
      expect(parseDuration(text)).toBe(parts.reduce((sum, [n, [, ms]]) => sum + n * (ms as number), 0));
    }),
  );
});
