import { nextTime } from '../../../src/services/queue/cron.js';

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

it('knows a time that never comes', () => {
  expect(nextTime('0 0 31 2 *', at('2026-01-01T00:00:00Z'))).toBeNull();
});

it.each(['', 'soon', '* * * *', '* * * * * *', '61 * * * *', 'CRON_TZ=Nowhere/Land * * * * *', '@every 5m'])(
  'refuses %p',
  (cron) => {
    expect(() => nextTime(cron, 0)).toThrow();
  },
);
