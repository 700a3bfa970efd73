import { exactFacts, type Row } from '../commands/commands.js';
import { firstKeyAt } from '../commands/key-specs.js';
import type { NodeName } from '../redis/node-address.js';
import { text } from '../resp/reply-fields.js';
import type { RespValue } from '../resp/resp-decoder.js';
import type { Argument, Command } from '../resp/resp-encoder.js';
import { type Join, unlessFailed } from './joins.js';
import { keySlot } from './key-slot.js';
import { nextScanCursor, readScanCursor } from './scan-cursor.js';
import { splitBySlot } from './split-keys.js';
import type { Topology } from './topology.js';
import { joinOfAll } from './whole-database.js';

/** A command for one node. */
export interface Part {
  readonly command: Command;
  readonly row: Row;
  /** Of its first key; `undefined` when it has none, or none that the command table tells. */
  readonly slot: number | undefined;
  /** Where it must go; else to the primary of its slot, or to any one. */
  readonly node?: NodeName;
}

/** What a row becomes in a cluster: one command, or several whose replies are joined. */
export interface RowPlan {
  readonly row: Row;
  readonly parts: readonly Part[];
  /** `undefined`: the reply of the only part is the row's. */
  readonly join: Join | undefined;
}

/** @param topology as it is known now */
export function planRow(row: Row, topology: Topology): RowPlan {
  const { command, rule } = row;
  const split = splitBySlot(row);
  if (split !== undefined)
    return { row, parts: split.parts.map((part) => ({ ...part, row })), join: split.join };
  if (rule.name === 'SCAN') return planScan(row, topology);
  const join = joinOfAll(row);
  if (join !== undefined && topology.primaries.length > 0)
    return { row, parts: topology.primaries.map((node) => ({ command, row, slot: undefined, node })), join };
  return { row, parts: [{ command, row, slot: slotOf(row) }], join: undefined };
}

/** The slot of a row's first key; Redis refuses rows whose keys are in several. */
export function slotOf({ rule, command }: Row): number | undefined {
  const { facts, name } = rule;
  // any node takes it; those of one channel go to one node, and so stay in order
  if (name === 'PUBLISH') return command[1] === undefined ? undefined : keySlot(command[1]);
  if (facts === undefined) return undefined;
  const at = firstKeyAt(exactFacts(facts, command).keys, command);
  return at === undefined ? undefined : keySlot(command[at] as Argument);
}

function planScan(row: Row, topology: Topology): RowPlan {
  const { command } = row;
  const position = readScanCursor(text(bytesOf(command[1])), topology);
  // what is no cursor is refused by Redis
  if (position === undefined) return { row, parts: [{ command, row, slot: undefined }], join: undefined };
  const { slot, node, cursor } = position;
  const part = { command: command.with(1, cursor), row, slot };
  if (node === undefined) return { row, parts: [part], join: undefined };
  return {
    row,
    parts: [{ ...part, node }],
    join: unlessFailed(([page]) =>
      withCursor(page, (next) => nextScanCursor({ slot, node, cursor }, next, topology)),
    ),
  };
}

function withCursor(page: RespValue, cursorAfter: (next: string) => string): RespValue {
  if (!Array.isArray(page)) return page;
  return [Buffer.from(cursorAfter(text(page[0]))), ...page.slice(1)];
}

function bytesOf(argument: Argument | undefined): Buffer {
  return typeof argument === 'string' ? Buffer.from(argument) : (argument ?? Buffer.alloc(0));
}
