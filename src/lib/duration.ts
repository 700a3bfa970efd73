const DAY = 86_400_000;
const UNIT_MS = {
  ...{ ms: 1, s: 1_000, m: 60_000, h: 3_600_000 },
  ...{ d: DAY, w: 7 * DAY, mo: 30 * DAY, y: 365 * DAY },
} as const;
const PART = /(\d+)(ms|mo|s|m|h|d|w|y)/y;

/**
 * Milliseconds of a duration such as `500ms`, `30s`, `1d10h30m`, `2w`; a month (`mo`) has 30 days, a year (`y`) 365; digits
 * alone are seconds. `undefined` when the
 * text is none, or names more than 2^53 ms.
 */
export function parseDuration(text: string): number | undefined {
  if (/^\d+$/.test(text)) return bounded(Number(text) * UNIT_MS.s);
  if (text === '') return undefined;
  let total = 0;
  PART.lastIndex = 0;
  while (PART.lastIndex < text.length) {
    const part = PART.exec(text);
    if (part === null) return undefined;
    total += Number(part[1]) * UNIT_MS[part[2] as keyof typeof UNIT_MS];
  }
  return bounded(total);
}

function bounded(ms: number): number | undefined {
  return Number.isSafeInteger(ms) ? ms : undefined;
}
