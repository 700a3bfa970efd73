const whole = new Intl.NumberFormat('en');

export const count = (value: number): string => whole.format(value);

export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let [size, unit] = [value, 0];
  while (size >= 1_024 && unit < units.length - 1) {
    size /= 1_024;
    unit += 1;
  }
  return `${size >= 100 || unit === 0 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}

/** @param seconds 0.0123 is `12 ms` */
export function latency(seconds: number): string {
  if (seconds < 0.001) return `${(seconds * 1_000).toFixed(2)} ms`;
  if (seconds < 0.01) return `${(seconds * 1_000).toFixed(1)} ms`;
  return seconds < 1 ? `${Math.round(seconds * 1_000)} ms` : `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
}

export function rate(perSecond: number): string {
  if (perSecond >= 100) return count(Math.round(perSecond));
  return perSecond >= 10 ? perSecond.toFixed(1) : perSecond.toFixed(2).replace(/\.?0+$/, '') || '0';
}

const STEPS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** The two largest parts: `2 h 5 min`. */
export function duration(seconds: number): string {
  let left = Math.round(Math.abs(seconds));
  const parts: string[] = [];
  for (const [unit, size] of STEPS) {
    const amount = Math.floor(left / size);
    left -= amount * size;
    if (amount > 0) parts.push(`${amount} ${unit}`);
    if (parts.length > 0 && (parts.length === 2 || amount === 0)) break;
  }
  return parts.join(' ') || '0 s';
}

/** `3 min ago`, `in 2 h`. */
export function relative(ms: number, now: number): string {
  const seconds = (ms - now) / 1_000;
  if (Math.abs(seconds) < 1) return 'now';
  return seconds < 0 ? `${duration(seconds)} ago` : `in ${duration(seconds)}`;
}

export function timestamp(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime())
    ? String(ms)
    : date.toISOString().replace('T', ' ').replace(/Z$/, ' UTC');
}

/** In the reader's own zone, with milliseconds. */
export function clock(ms: number): string {
  const date = new Date(ms);
  const text = date.toLocaleTimeString('en-GB', { hour12: false });
  return `${text}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

/** JSON is laid out, anything else stays. */
export function pretty(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}

/** As a word of a shell. */
export const quoted = (text: string): string =>
  /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
