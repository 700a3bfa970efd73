import { Cron } from 'croner';

const TIME_ZONE = /^(?:CRON_TZ|TZ)=(\S+)\s+(.*)$/s;

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
  const cron = new Cron(fields.trim(), { mode: '5-part', timezone });
  return cron.nextRun(new Date(after))?.getTime() ?? null;
}
