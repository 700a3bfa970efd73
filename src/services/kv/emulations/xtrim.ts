import { keyword } from '../resp/keyword.js';
import type { RespValue } from '../resp/resp-decoder.js';
import { type Emulate, type FollowUp, unchanged } from './emulation.js';

/**
 * XTRIM with `~` and without LIMIT is sent as it is, and once more with `=` when it has removed something. Redis removes
 * whole nodes for `~` and keeps up to a node (100 entries) too many, and in one call it removes 100 nodes at most, so that
 * it leaves 10,000 of 20,000 where 50 were wanted; the server setting `stream-node-max-entries` lowers both at once, so
 * it does not help. The hosted product keeps little more than was named of a long stream, and a short one whole. Exact
 * trimming of 280,000 entries took 1.2 ms (Redis 7.0). Who names a LIMIT wants little work a call and gets it.
 */
export const emulateXtrim: Emulate = (command) => {
  const strategy = keyword(command, 2);
  if (strategy !== 'MAXLEN' && strategy !== 'MINID') return undefined;
  if (keyword(command, 3) !== '~') return undefined;
  for (let i = 5; i < command.length; i++) {
    if (keyword(command, i) === 'LIMIT') return undefined;
  }
  const exact = command.with(3, '=');
  return {
    command,
    finish: (removed) =>
      isCount(removed) && removed !== '0'
        ? ({
            commands: [exact],
            otherwise: removed,
            finish: ([more]) => sum(removed, more),
          } satisfies FollowUp)
        : unchanged(removed),
  };
};

function isCount(reply: RespValue): reply is string {
  return typeof reply === 'string';
}

/** What the second call removed counts too; what it could not do was not promised. */
function sum(removed: string, more: RespValue): string {
  return isCount(more) ? String(BigInt(removed) + BigInt(more)) : removed;
}
