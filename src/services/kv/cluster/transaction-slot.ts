import { HttpError } from '../../../http/errors.js';
import { exactFacts, type Row } from '../commands/commands.js';
import { keysAt } from '../commands/key-specs.js';
import type { Argument } from '../resp/resp-encoder.js';
import { keySlot } from './key-slot.js';
import { joinOfAll } from './whole-database.js';

/**
 * The slot of all keys of a transaction; `undefined` when it has none.
 * @throws HttpError `invalid_request` for keys in several slots, and for rows that concern all of the database
 */
export function slotOfTransaction(rows: readonly Row[]): number | undefined {
  let slot: number | undefined;
  for (const row of rows) {
    const { rule, command } = row;
    if (rule.name === 'SCAN' || joinOfAll(row) !== undefined)
      throw new HttpError(
        'invalid_request',
        `ERR Command '${rule.name}' is not available in a transaction of a cluster: it concerns all of its nodes`,
      );
    // a channel is no key
    if (rule.facts === undefined || rule.name === 'PUBLISH') continue;
    for (const at of keysAt(exactFacts(rule.facts, command).keys, command)) {
      const own = keySlot(command[at] as Argument);
      if (slot !== undefined && own !== slot)
        throw new HttpError('invalid_request', "CROSSSLOT Keys in request don't hash to the same slot");
      slot = own;
    }
  }
  return slot;
}
