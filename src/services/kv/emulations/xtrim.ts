import { keyword } from '../keyword.js';
import { type Emulate, withArgument } from './emulation.js';

/**
 * XTRIM with `~` and without LIMIT is sent with `=`. Redis removes whole nodes for `~` and keeps up to a node (100 entries)
 * too many, and in one call it removes 100 nodes at most, so that it leaves 10,000 of 20,000 where 50 were wanted.
 * The server setting `stream-node-max-entries` lowers both at once, so it does not help. Exact trimming of 280,000
 * entries took 1.2 ms (Redis 7.0). Who names a LIMIT wants little work a call and gets it.
 */
export const emulateXtrim: Emulate = (command) => {
  const strategy = keyword(command, 2);
  if (strategy !== 'MAXLEN' && strategy !== 'MINID') return undefined;
  if (keyword(command, 3) !== '~') return undefined;
  for (let i = 5; i < command.length; i++) {
    if (keyword(command, i) === 'LIMIT') return undefined;
  }
  return withArgument(command, 3, '=');
};
