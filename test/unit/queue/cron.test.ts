import { Cron } from 'croner';
import { nextTime } from '../../../src/services/queue/schedules/cron.js';

const at = (text: string) => Date.parse(text);

it.each([
  ['* * * * *', '2026-01-01T00:00:30Z', '2026-01-01T00:01:00Z'],
  ['0 9 * * 1', '2026-01-01T00:00:00Z', '2026-01-05T09:00:00Z'],
  ['CRON_TZ=Europe/Berlin 0 9 * * *', '2026-07-01T00:00:00Z', '2026-07-01T07:00:00Z'],
  // the gap in spring, and the hour that comes twice in autumn
  ['CRON_TZ=Europe/Berlin 30 2 * * *', '2026-03-28T12:00:00Z', '2026-03-29T01:00:00Z'],
  ['CRON_TZ=Europe/Berlin 30 2 * * *', '2026-10-25T00:30:00Z', '2026-10-26T01:30:00Z'],
  // day of month or day of week, as in classic cron
  ['0 0 13 * 5', '2026-01-01T12:00:00Z', '2026-01-02T00:00:00Z'],
])('%s after %s is %s', (cron, after, next) => {
  const found = nextTime(cron, at(after));
  expect(found === null ? null : new Date(found).toISOString()).toBe(new Date(at(next)).toISOString());
});

it.each(['0 0 31 2 *', 'CRON_TZ=Europe/Berlin 0 0 31 2,4,6,9,11 *', '0 0 31W 2 *', '0 0 31 2 +*'])(
  'knows that %s never comes, without looking for long',
  (cron) => {
    // croner asks for two dates a year or more, so their number says how far it looked, on a busy machine too
    const datesAsked = (work: () => unknown) => {
      const asked = jest.spyOn(Date, 'UTC');
      try {
        expect(work()).toBeNull();
        return asked.mock.calls.length;
      } finally {
        asked.mockRestore();
      }
    };
    const [, timezone = 'UTC', fields = cron] = /^CRON_TZ=(\S+) (.*)$/.exec(cron) ?? [];
    const far = new Cron(fields, { mode: '5-part', timezone });
    const byItself = datesAsked(() => far.nextRun(new Date(0)));
    expect(byItself).toBeGreaterThan(400);
    expect(datesAsked(() => nextTime(cron, at('2026-01-01T00:00:00Z')))).toBeLessThan(byItself / 5);
  },
);

it('finds a time that is rare', () => {
  // Mondays; 2100 is no leap year
  expect(nextTime('0 0 29 2 +1', at('2072-03-01T00:00:00Z'))).toBe(at('2112-02-29T00:00:00Z'));
  expect(nextTime('CRON_TZ=Pacific/Kiritimati 0 0 1 1 *', at('2026-12-31T09:00:00Z'))).toBe(
    at('2026-12-31T10:00:00Z'),
  );
  expect(nextTime('CRON_TZ=Pacific/Niue 30 23 31 12 *', at('2027-01-01T05:00:00Z'))).toBe(
    at('2027-01-01T10:30:00Z'),
  );
  expect(nextTime('@daily', at('2026-01-01T12:00:00Z'))).toBe(at('2026-01-02T00:00:00Z'));
});

it.each(['', 'soon', '* * * *', '* * * * * *', '61 * * * *', 'CRON_TZ=Nowhere/Land * * * * *', '@every 5m'])(
  'refuses %p',
  (cron) => {
    expect(() => nextTime(cron, 0)).toThrow();
  },
);
