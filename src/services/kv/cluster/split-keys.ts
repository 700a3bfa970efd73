import type { Row } from '../commands/commands.js';
import type { RespValue } from '../resp/resp-decoder.js';
import type { Argument, Command } from '../resp/resp-encoder.js';
import { type Join, sum, unlessFailed } from './joins.js';
import { keySlot } from './key-slot.js';

export interface SlotPart {
  readonly slot: number;
  readonly command: Command;
}

export interface Split {
  readonly parts: readonly SlotPart[];
  readonly join: Join;
}

/** Nothing but keys, and what they do to one key has nothing to do with the others. */
const SPLIT = new Set(['DEL', 'UNLINK', 'EXISTS', 'TOUCH', 'MGET']);

/** A command whose keys are in several slots as one command a slot; `undefined` where it is one already, or must be. */
export function splitBySlot({ rule, command }: Row): Split | undefined {
  if (!SPLIT.has(rule.name) || command.length < 3) return undefined;
  const bySlot = new Map<number, number[]>();
  for (let i = 1; i < command.length; i++) {
    const slot = keySlot(command[i] as Argument);
    const places = bySlot.get(slot);
    if (places === undefined) bySlot.set(slot, [i]);
    else places.push(i);
  }
  if (bySlot.size === 1) return undefined;
  const name = command[0] as Argument;
  const parts = [...bySlot].map(([slot, places]) => ({
    slot,
    command: [name, ...places.map((i) => command[i] as Argument)],
  }));
  const join = rule.name === 'MGET' ? inPlace([...bySlot.values()]) : sum;
  return { parts, join: unlessFailed(join) };
}

/** @param places of each part: which arguments its values belong to */
function inPlace(places: readonly (readonly number[])[]): Join {
  return (replies) => {
    const values: RespValue[] = [];
    for (const [part, own] of places.entries()) {
      const reply = replies[part];
      for (const [k, place] of own.entries()) values[place - 1] = Array.isArray(reply) ? reply[k] : null;
    }
    return values;
  };
}
