import { parseDuration } from '../../../lib/duration.js';

/** A period is at most a week, in seconds. */
const MAX_PERIOD_S = 7 * 86_400;
const MAX_COUNT = 2 ** 31 - 1;

export interface FlowLimits {
  readonly parallelism: number | null;
  readonly rate: number | null;
  /** In seconds. */
  readonly period: number;
}

/** Limits as `parallelism=5, rate=10, period=1m` says them, or why it does not. The period is 1 s unless told. */
export function parseFlowLimits(text: string): FlowLimits | string {
  const limits: { parallelism: number | null; rate: number | null; period: number } = {
    parallelism: null,
    rate: null,
    period: 1,
  };
  for (const part of text.split(',')) {
    const [, name, value] = /^\s*(\w+)\s*=\s*(\w+)\s*$/.exec(part) ?? [];
    if (name === 'period') {
      const seconds = periodSeconds(value as string);
      if (seconds === undefined) return 'period: expected a duration of 1s to 7d';
      limits.period = seconds;
    } else if (name === 'parallelism' || name === 'rate') {
      const count = wholeCount(value as string);
      if (count === undefined) return `${name}: expected a whole number above zero`;
      limits[name] = count;
    } else return 'expected parallelism=N, rate=N, period=DURATION';
  }
  if (limits.parallelism === null && limits.rate === null) return 'names neither parallelism nor rate';
  return limits;
}

/** Whole seconds of a period, `undefined` when it is none or longer than a week. */
export function periodSeconds(text: string): number | undefined {
  const ms = parseDuration(text);
  if (ms === undefined || ms < 1_000 || ms > MAX_PERIOD_S * 1_000) return undefined;
  return Math.round(ms / 1_000);
}

/** `undefined` for anything but 1, 2, 3 ... */
export function wholeCount(text: string): number | undefined {
  return /^[1-9]\d*$/.test(text) && Number(text) <= MAX_COUNT ? Number(text) : undefined;
}
