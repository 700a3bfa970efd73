import type { Argument } from '../resp/resp-encoder.js';

/** The hosted product locks only a script's keys when it is set; Redis knows one lock and refuses the word. */
const FLAG = 'allow-key-locking';

/** A first line that asks for nothing. */
const WITHOUT_FLAGS = /^#!lua(?:\s+["']?flags=["']{0,2})*\s*$/;

/**
 * A script without the flag `allow-key-locking` of its first line (`#!lua flags=no-writes,allow-key-locking`); other
 * flags and every line's number stay. A line that asks for nothing else is emptied: one without flags says to Redis
 * that the script writes, so that EVAL_RO would refuse it, and Redis 6 takes no such line at all.
 * @returns `undefined` when the script has no such flag
 */
export function withoutKeyLocking(script: Argument): Argument | undefined {
  const end = script.indexOf('\n');
  if (end < 0) return undefined;
  const line = typeof script === 'string' ? script.slice(0, end) : script.toString('latin1', 0, end);
  if (!line.startsWith('#!') || !line.includes(FLAG)) return undefined;
  const stripped = line.replace(
    /(\sflags=["']?|\s["']flags=)([^\s"']*)/g,
    (_, before: string, flags: string) =>
      before +
      flags
        .split(',')
        .filter((flag) => flag !== FLAG)
        .join(','),
  );
  if (stripped === line) return undefined;
  const kept = WITHOUT_FLAGS.test(stripped) ? '' : stripped;
  return typeof script === 'string'
    ? kept + script.slice(end)
    : Buffer.concat([Buffer.from(kept, 'latin1'), script.subarray(end)]);
}
