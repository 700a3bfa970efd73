import { keyword } from '../resp/keyword.js';
import type { Argument, Command } from '../resp/resp-encoder.js';

/** Commands whose option BLOCK makes them wait. */
export const BLOCKING_READS: ReadonlySet<string> = new Set(['XREAD', 'XREADGROUP']);

export interface Blocking {
  /** The command with its wait bounded. */
  readonly command: Command;
  /** How long it may wait, in ms; 0 where Redis will refuse it. */
  readonly ms: number;
}

/**
 * The wait of an XREAD or XREADGROUP, bounded to `longestMs` (BLOCK 0 is without end); `undefined` when it has none.
 * BLOCK can only stand before STREAMS; after it come keys, which may have any name. Given twice, Redis takes the last.
 */
export function blockingOf(command: Command, longestMs: number): Blocking | undefined {
  let changed: Argument[] | undefined;
  let ms = 0;
  for (let i = 1; i < command.length; i++) {
    const word = keyword(command, i);
    if (word === 'STREAMS') break;
    // the group and the consumer of XREADGROUP may have any name too
    if (word === 'GROUP') i += 2;
    else if (word === 'BLOCK') {
      changed ??= [...command];
      ms = bounded(command[i + 1], longestMs);
      // anything but plain digits is Redis' to refuse, at once
      if (ms > 0) changed[i + 1] = String(ms);
    }
  }
  return changed === undefined ? undefined : { command: changed, ms };
}

function bounded(wanted: Argument | undefined, longestMs: number): number {
  const text = typeof wanted === 'string' ? wanted : (wanted?.toString('latin1') ?? '');
  if (!/^\d{1,19}$/.test(text)) return 0;
  return Number(text) === 0 ? longestMs : Math.min(Number(text), longestMs);
}
