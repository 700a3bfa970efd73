import { HttpError } from '../../../http/errors.js';
import { within } from '../../../lib/within.js';
import type { Row } from '../commands/commands.js';
import { notConnected } from '../errors.js';
import type { Backend } from '../redis/backend.js';
import type { NodeName } from '../redis/node-address.js';
import type { Finish } from '../redis/runner.js';
import { reasonOf } from '../redis/session.js';
import type { Command } from '../resp/resp-encoder.js';
import { ClusterRunner } from './cluster-runner.js';
import type { NodeSessions } from './node-sessions.js';
import type { Topology } from './topology.js';

export interface ClusterBackendOptions {
  readonly topology: Topology;
  readonly nodes: NodeSessions;
  /** Whether somebody is connected to a node. */
  readonly isUp: (node: NodeName) => boolean;
  readonly onClose: () => void;
}

/** How long the users of other nodes wait for one that does not answer, in ms. */
const LOGIN_MS = 1_000;

/** The primaries of a cluster as one user sees them. */
export class ClusterBackend implements Backend {
  private readonly runner: ClusterRunner;

  constructor(private readonly options: ClusterBackendOptions) {
    const { topology, nodes } = options;
    this.runner = new ClusterRunner(topology, nodes, () => this.home());
  }

  run<T>(rows: readonly Row[], finish: Finish<T>): Promise<T> {
    return this.runner.run(rows, finish);
  }

  transaction<T>(rows: readonly Row[], finish: Finish<T>): Promise<T> {
    return this.runner.transaction(rows, finish);
  }

  /** MULTI was allowed when the connection was opened; one that nobody uses is kept for some seconds only. */
  guardedTransaction<T>(rows: readonly Row[], finish: Finish<T>): Promise<T> {
    return this.runner.transaction(rows, finish);
  }

  get isOpen(): boolean {
    return this.options.nodes.all.some((session) => session.isOpen);
  }

  get failure(): Error | undefined {
    const { topology, nodes } = this.options;
    return topology.failure ?? nodes.all.find(({ failure }) => failure !== undefined)?.failure;
  }

  async settled(): Promise<void> {
    const { topology, nodes } = this.options;
    await topology.settled();
    const home = this.home();
    if (home !== undefined) await nodes.session(home, 'main').settled();
  }

  get pending(): number {
    return this.options.nodes.all.reduce((sum, session) => sum + session.pending, 0);
  }

  /** Those that do not answer count neither way, if one does. */
  async login(login: Command): Promise<boolean> {
    const open = this.options.nodes.all.filter((session) => session.isOpen);
    const answers = await Promise.all(
      open.map((session) => within(LOGIN_MS, session.login(login)).catch(() => undefined)),
    );
    if (!answers.includes(true) && !answers.includes(false)) throw notConnected(this.failure);
    return !answers.includes(false);
  }

  async check(): Promise<void> {
    const { topology, nodes } = this.options;
    if (!topology.isKnown)
      throw new HttpError('backend_unavailable', `no node tells of its cluster${reasonOf(topology.failure)}`);
    await Promise.all(topology.primaries.map((node) => nodes.session(node, 'main').check()));
    if (!topology.isWhole)
      throw new HttpError('backend_unavailable', 'the cluster is not whole: slots have no primary');
  }

  /** Lets go of nodes that are no primaries any more. */
  retainPrimaries(): void {
    const { topology, nodes } = this.options;
    nodes.retain(new Set(topology.primaries));
  }

  close(): void {
    this.options.nodes.close();
    this.options.onClose();
  }

  /** For what any node can answer: the first primary that is there, so that the same one answers as long as it is. */
  private home(): NodeName | undefined {
    const { topology, nodes, isUp } = this.options;
    const { primaries } = topology;
    return primaries.find((node) => nodes.isOpen(node)) ?? primaries.find(isUp) ?? primaries[0];
  }
}
