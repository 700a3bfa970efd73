import { Cron } from 'croner';

const TIME_ZONE = /^(?:CRON_TZ|TZ)=(\S+)\s+(.*)$/s;

/** Characters of an expression; lists of every minute, hour and day have 313. */
export const MAX_CRON_LENGTH = 512;

/**
 * No time is looked for beyond so many years: a 29 February that must be a certain weekday may be 40 years away. Croner by
 * itself looks through 400 for one that never comes, which took 70 ms; through 41 it takes 1 ms.
 */
const MAX_YEARS = 41;

/**
 * The first time after `after` that a cron expression names, `null` when there is none any more. Five fields, minute
 * resolution, UTC unless it begins with `CRON_TZ=Area/City `; a time that daylight saving skips runs an hour later, one
 * that comes twice runs once.
 * @param after Unix time in ms; so is the result
 * @throws Error when it is no cron expression
 */
export function nextTime(expression: string, after: number): number | null {
  const [, timezone = 'UTC', fields = expression] = TIME_ZONE.exec(expression.trim()) ?? [];
  // without a function to call it starts no timer
  const cron = new Cron(...patternOf(fields.trim(), new Date(after).getUTCFullYear(), timezone));
  return cron.nextRun(new Date(after))?.getTime() ?? null;
}

/** Five fields with the years that are looked through; a name such as `@daily`, whose time always comes, stays as it is. */
function patternOf(fields: string, year: number, timezone: string): ConstructorParameters<typeof Cron> {
  if (fields.split(/\s+/).length !== 5) return [fields, { mode: '5-part', timezone }];
  // a zone may be a year ahead or behind for some hours
  return [`0 ${fields} ${year - 1}-${year + MAX_YEARS}`, { mode: '7-part', timezone }];
}
