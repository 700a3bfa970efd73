import { laneOfRows } from '../commands/commands.js';
import type { NodeName } from '../redis/node-address.js';
import type { RespValue } from '../resp/resp-decoder.js';
import { type Command, encodeCommands } from '../resp/resp-encoder.js';
import type { NodeSessions } from './node-sessions.js';
import type { Part } from './row-plan.js';

/** A part on its way. */
export interface RoutedPart {
  readonly part: Part;
  /** Its place among the outcomes. */
  readonly place: number;
  readonly node: NodeName;
  /** The slot is on its way to that node, which takes the command only with ASKING before it. */
  readonly asking: boolean;
}

export const ASKING: Command = ['ASKING'];

/** Sends all that goes to one node in one write. @returns one reply a routed part @throws HttpError as `Runner.run` */
export function sendToNode(routed: readonly RoutedPart[], nodes: NodeSessions): Promise<RespValue[]> {
  const [first] = routed;
  const commands: Command[] = [];
  const places: number[] = [];
  for (const { part, asking } of routed) {
    if (asking) commands.push(ASKING);
    places.push(commands.length);
    commands.push(part.command);
  }
  const lane = laneOfRows(routed.map(({ part }) => part.row));
  return submit(nodes, first?.node as NodeName, lane, commands, (replies) => places.map((i) => replies[i]));
}

/**
 * Sends commands to a node in one write, once there is a connection or an attempt to get one has failed.
 * @throws HttpError as `Runner.run`; `unauthorized` as `NodeSessions.refusal`
 */
export async function submit<T>(
  nodes: NodeSessions,
  node: NodeName,
  lane: Parameters<NodeSessions['session']>[1],
  commands: readonly Command[],
  finish: (replies: RespValue[]) => T,
): Promise<T> {
  const session = nodes.session(node, lane);
  if (!session.isOpen) {
    await session.settled();
    if (!session.isOpen) throw nodes.refusal(session);
  }
  return session.run(encodeCommands(commands), commands.length, finish);
}
