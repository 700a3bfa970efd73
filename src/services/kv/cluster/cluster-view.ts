import { parseAddress } from '../../../lib/address.js';
import { type NodeName, nodeName } from '../redis/node-address.js';
import { items, text } from '../resp/reply-fields.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import type { Command } from '../resp/resp-encoder.js';
import { SLOTS } from './key-slot.js';

/** What one node knows of its cluster. */
export interface ClusterView {
  /** Grows with every failover and every move of a slot. */
  readonly epoch: number;
  /** By the node's own word (`cluster_state`). */
  readonly isWorking: boolean;
  /** The primary of each slot. */
  readonly owners: readonly (NodeName | undefined)[];
  /** Primaries that have slots, by their lowest one. */
  readonly primaries: readonly NodeName[];
  /** Every node under each of its names: only these are connected to. */
  readonly known: ReadonlySet<NodeName>;
}

/** Their replies make a view. */
export const VIEW_COMMANDS: readonly Command[] = [
  ['CLUSTER', 'INFO'],
  ['CLUSTER', 'SLOTS'],
  ['CLUSTER', 'NODES'],
];

/**
 * Reads the replies to `VIEW_COMMANDS`.
 * @param asked the node that they came from
 * @throws Error with Redis' text when it refused to tell
 */
export function readView([info, slots, nodes]: readonly RespValue[], asked: NodeName): ClusterView {
  for (const reply of [info, slots]) if (reply instanceof RespError) throw new Error(reply.text);
  const owners = new Array<NodeName | undefined>(SLOTS).fill(undefined);
  const known = new Set<NodeName>([asked]);
  for (const range of items(slots)) {
    const [from, to, ...servers] = items(range);
    const names = servers.map((server) => nameOf(items(server), asked));
    for (const name of names) known.add(name);
    owners.fill(names[0], Number(text(from)), Number(text(to)) + 1);
  }
  const hidden = items(slots).some((range) =>
    items(range)
      .slice(2)
      .some((server) => isHidden(items(server)[0])),
  );
  for (const line of text(nodes).split('\n'))
    for (const name of namesOf(line, hidden ? parseAddress(asked).host : '')) known.add(name);
  const facts = text(info);
  return {
    epoch: Number(/^cluster_current_epoch:(\d+)/m.exec(facts)?.[1] ?? 0),
    isWorking: /^cluster_state:ok/m.test(facts),
    owners,
    primaries: [...new Set(owners.filter((name) => name !== undefined))],
    known,
  };
}

/** Of `[host, port, id, ...]` in CLUSTER SLOTS: a node that does not know its own host (or says none) is where it was asked. */
function nameOf([host, port]: readonly RespValue[], asked: NodeName): NodeName {
  return nodeName({ host: isHidden(host) ? parseAddress(asked).host : text(host), port: Number(text(port)) });
}

function isHidden(host: RespValue | undefined): boolean {
  return text(host) === '' || text(host) === '?';
}

/**
 * Of a line of CLUSTER NODES, `id host:port@bus,hostname flags ...`: what a redirection may call the node.
 * @param asked the host for nodes that tell none to clients
 */
function namesOf(line: string, asked: string): NodeName[] {
  const [place = '', hostname = ''] = (line.split(' ')[1] ?? '').split(',');
  const match = /^(.*):(\d+)(?:@\d+)?$/.exec(place);
  if (match === null) return [];
  const [, host, port] = match;
  return [host, hostname, asked]
    .filter((name) => name !== undefined && name !== '' && name !== '?')
    .map((name) => `${name}:${port}`);
}

/** The view to go by: one of a node that is cut off from the others is older, or says so. */
export function newestView(views: readonly ClusterView[]): ClusterView | undefined {
  const [newest] = [...views].sort((a, b) => Number(b.isWorking) - Number(a.isWorking) || b.epoch - a.epoch);
  return newest;
}
