import { HttpError } from '../../../http/errors.js';
import { laneOfRows, type Row } from '../commands/commands.js';
import { notConnected } from '../errors.js';
import type { NodeName } from '../redis/node-address.js';
import { type Redirection, redirectionOf } from '../redis/redirection.js';
import { type Finish, type Runner, transactionCommands } from '../redis/runner.js';
import { RespError, type RespValue } from '../resp/resp-decoder.js';
import { type Command, encodeCommand } from '../resp/resp-encoder.js';
import { ASKING, type RoutedPart, sendToNode, submit } from './node-batch.js';
import type { NodeSessions } from './node-sessions.js';
import { type Outcome, outcomeOfJoined, repliesOf } from './outcomes.js';
import { type Part, planRow } from './row-plan.js';
import type { Topology } from './topology.js';
import { slotOfTransaction } from './transaction-slot.js';

/** A command that is sent on so often runs nowhere for now: a slot moves once, and a failover takes seconds. */
const MOST_REDIRECTIONS = 5;

const REDIRECTED = Symbol('redirected');
const NOT_SERVED = new RespError('CLUSTERDOWN Hash slot not served');

/** Runs commands on the primaries of a cluster. */
export class ClusterRunner implements Runner {
  constructor(
    private readonly topology: Topology,
    private readonly nodes: NodeSessions,
    /** The node for what any can answer. */
    private readonly home: () => NodeName | undefined,
  ) {}

  /**
   * Each row goes to the primary of its key, those of one primary in order and in one write; see `planRow` for rows that
   * concern several. When some primaries cannot be reached, their rows become errors and the others run.
   */
  run<T>(rows: readonly Row[], finish: Finish<T>): Promise<T> {
    const [row] = rows;
    const one = rows.length === 1 && row !== undefined ? this.runOne(row, finish) : undefined;
    return one ?? this.runAll(rows, finish);
  }

  /**
   * The short way for nearly every command, which has one key and whose primary is connected; `undefined` for another.
   * One that is redirected did not run, and takes the long way.
   */
  private runOne<T>(row: Row, finish: Finish<T>): Promise<T> | undefined {
    const plan = planRow(row, this.topology);
    const [part] = plan.parts;
    if (part === undefined || plan.join !== undefined) return undefined;
    const node = this.nodeOf(part);
    if (node === undefined || !this.nodes.isOpen(node)) return undefined;
    const session = this.nodes.session(node, row.rule.lane);
    if (!session.isOpen) return undefined;
    const answer = session.run(encodeCommand(part.command), 1, (replies) =>
      this.redirectionOf(replies[0], node, part.slot) === undefined ? finish(replies) : REDIRECTED,
    );
    return answer.then((result) => (result === REDIRECTED ? this.runAll([row], finish) : result));
  }

  private async runAll<T>(rows: readonly Row[], finish: Finish<T>): Promise<T> {
    if (!this.topology.isKnown) await this.known();
    const plans = rows.map((row) => planRow(row, this.topology));
    const outcomes = await this.send(plans.flatMap(({ parts }) => parts));
    let end = 0;
    const ofRows = plans.map((plan) => {
      const start = end;
      end += plan.parts.length;
      return plan.join === undefined
        ? outcomes[start]
        : outcomeOfJoined(plan.row, plan.join, outcomes.slice(start, end));
    });
    return finish(repliesOf(ofRows));
  }

  /** All keys must be in one slot. @throws HttpError `invalid_request` where they are not */
  async transaction<T>(rows: readonly Row[], finish: Finish<T>): Promise<T> {
    const slot = slotOfTransaction(rows);
    if (!this.topology.isKnown) await this.known();
    let node = slot === undefined ? this.home() : this.topology.ownerOf(slot);
    if (node === undefined) return finish([NOT_SERVED]);
    const commands = transactionCommands(rows);
    let asking = false;
    for (let redirections = 0; ; redirections++) {
      const session = this.nodes.session(node, laneOfRows(rows));
      if (!session.isOpen) await session.settled();
      if (session.transactionRefusal !== undefined) return finish([session.transactionRefusal]);
      const sent: readonly Command[] = asking ? [ASKING, ...commands] : commands;
      const all = await submit(this.nodes, node, laneOfRows(rows), sent, (replies) => replies);
      const replies = asking ? all.slice(1) : all;
      const redirection = await this.redirectionOfTransaction(replies, node, slot);
      if (redirection === undefined) return finish(replies);
      if (redirections === MOST_REDIRECTIONS) throw redirectedTooOften();
      node = redirection.to;
      asking = redirection.asking;
    }
  }

  private nodeOf({ node, slot }: Part): NodeName | undefined {
    return node ?? (slot === undefined ? this.home() : this.topology.ownerOf(slot));
  }

  private async known(): Promise<void> {
    await this.topology.settled();
    if (!this.topology.isKnown) throw notConnected(this.topology.failure);
  }

  /** @returns one outcome a part */
  private async send(parts: readonly Part[]): Promise<Outcome[]> {
    const outcomes: Outcome[] = parts.map(() => NOT_SERVED);
    let routed: RoutedPart[] = [];
    for (const [place, part] of parts.entries()) {
      const node = this.nodeOf(part);
      if (node !== undefined) routed.push({ part, place, node, asking: false });
    }
    for (let redirections = 0; routed.length > 0; redirections++) {
      await Promise.all(groupByNode(routed).map((group) => this.sendGroup(group, outcomes)));
      const further = await this.furtherParts(routed, outcomes);
      if (redirections < MOST_REDIRECTIONS) routed = further;
      else {
        for (const { place } of further) outcomes[place] = redirectedTooOften();
        break;
      }
    }
    return outcomes;
  }

  private async sendGroup(group: readonly RoutedPart[], outcomes: Outcome[]): Promise<void> {
    try {
      const replies = await sendToNode(group, this.nodes);
      for (const [k, { place }] of group.entries()) outcomes[place] = replies[k];
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      if (error.code !== 'unauthorized') this.topology.refreshSoon();
      for (const { place } of group) outcomes[place] = error;
    }
  }

  /** Where the parts that were redirected go next, in the same order. */
  private async furtherParts(
    routed: readonly RoutedPart[],
    outcomes: readonly Outcome[],
  ): Promise<RoutedPart[]> {
    const further: RoutedPart[] = [];
    for (const { part, place, node } of routed) {
      const redirection = this.redirectionOf(outcomes[place], node, part.slot);
      if (redirection !== undefined)
        further.push({ part, place, node: redirection.to, asking: redirection.asking });
    }
    return this.toKnownNodes(further, ({ node }) => node);
  }

  /** Of a transaction; of one that ran there is none, as its rows' replies are EXEC's. */
  private async redirectionOfTransaction(
    replies: readonly RespValue[],
    from: NodeName,
    slot: number | undefined,
  ): Promise<Redirection | undefined> {
    if (Array.isArray(replies.at(-1))) return undefined;
    const redirections = replies.flatMap((reply) => this.redirectionOf(reply, from, slot) ?? []);
    const [redirection] = await this.toKnownNodes(redirections.slice(0, 1), ({ to }) => to);
    return redirection;
  }

  /** A script can answer what looks like a redirection: one that is not about the command's slot is none. */
  private redirectionOf(outcome: Outcome, from: NodeName, slot: number | undefined): Redirection | undefined {
    if (!(outcome instanceof RespError)) return undefined;
    if (outcome.text.startsWith('CLUSTERDOWN ')) this.topology.refreshSoon();
    const redirection = redirectionOf(outcome, from);
    if (redirection === undefined || (slot !== undefined && redirection.slot !== slot)) return undefined;
    if (!redirection.asking) this.topology.moved(redirection.slot, redirection.to);
    return redirection;
  }

  /** Portico logs in only at nodes that the cluster itself has named, whatever a reply says. */
  private async toKnownNodes<T>(further: readonly T[], nodeOf: (one: T) => NodeName): Promise<T[]> {
    const isKnown = (one: T) => this.topology.knows(nodeOf(one));
    if (!further.every(isKnown)) await this.topology.renewed();
    return further.filter(isKnown);
  }
}

function groupByNode(routed: readonly RoutedPart[]): RoutedPart[][] {
  const groups = new Map<NodeName, RoutedPart[]>();
  for (const one of routed) {
    const group = groups.get(one.node);
    if (group === undefined) groups.set(one.node, [one]);
    else group.push(one);
  }
  return [...groups.values()];
}

function redirectedTooOften(): HttpError {
  return new HttpError('backend_unavailable', 'The cluster keeps moving this slot; nothing was executed');
}
