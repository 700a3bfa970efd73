import type { NodeName } from '../redis/node-address.js';
import { keySlot, SLOTS } from './key-slot.js';
import type { Topology } from './topology.js';

/**
 * A SCAN of the whole cluster goes through the primaries by their lowest slot. Its cursor is a number of which the low
 * 14 bits are a slot of the primary that is being scanned, the next 8 tell which node that was, and the rest is that
 * node's own cursor. A node's cursor means nothing to another one: when the slot has another primary now, that one is
 * scanned from its start, so that keys may come twice and are not left out.
 */
export interface ScanPosition {
  readonly slot: number;
  readonly node: NodeName;
  readonly cursor: string;
}

const SLOT_BITS = 14n;
const NODE_BITS = 8n;

type Owners = Pick<Topology, 'ownerOf'>;

/** Where to go on; `undefined` when `cursor` is none. `node` is `undefined` where the slot has no primary now. */
export function readScanCursor(
  cursor: string,
  owners: Owners,
): (Omit<ScanPosition, 'node'> & { node: NodeName | undefined }) | undefined {
  if (!/^\d{1,30}$/.test(cursor)) return undefined;
  const all = BigInt(cursor);
  const slot = all === 0n ? lowestSlot(owners) : Number(BigInt.asUintN(Number(SLOT_BITS), all));
  const node = owners.ownerOf(slot);
  const mark = BigInt.asUintN(Number(NODE_BITS), all >> SLOT_BITS);
  const own = node !== undefined && mark === markOf(node) ? all >> (SLOT_BITS + NODE_BITS) : 0n;
  return { slot, node, cursor: String(own) };
}

/** The cursor after a page: `next` is what the node said; `'0'` when the last node is done. */
export function nextScanCursor({ slot, node }: ScanPosition, next: string, owners: Owners): string {
  if (next !== '0') return write(slot, node, BigInt(next));
  const following = slotOfNextNode(slot, owners);
  if (following === undefined) return '0';
  return write(following, owners.ownerOf(following) as NodeName, 0n);
}

function write(slot: number, node: NodeName, cursor: bigint): string {
  return String((((cursor << NODE_BITS) | markOf(node)) << SLOT_BITS) | BigInt(slot));
}

/** Any number of few bits that differs between most nodes. */
function markOf(node: NodeName): bigint {
  return BigInt.asUintN(Number(NODE_BITS), BigInt(keySlot(node)));
}

function lowestSlot(owners: Owners): number {
  for (let slot = 0; slot < SLOTS; slot++) if (owners.ownerOf(slot) !== undefined) return slot;
  return 0;
}

/** The lowest slot above `slot` whose primary has none up to `slot`. */
function slotOfNextNode(slot: number, owners: Owners): number | undefined {
  const done = new Set<NodeName | undefined>([undefined]);
  for (let i = 0; i <= slot; i++) done.add(owners.ownerOf(i));
  for (let i = slot + 1; i < SLOTS; i++) if (!done.has(owners.ownerOf(i))) return i;
  return undefined;
}
