import { type Address, parseAddress } from '../../../lib/address.js';
import type { ReleaseRegistry } from '../../../lib/lifecycle.js';
import type { Logger } from '../../../lib/logger.js';
import type { Backend, OpenSession, OwnOptions, Servers } from '../redis/backend.js';
import { type NodeName, nodeName } from '../redis/node-address.js';
import type { RespValue } from '../resp/resp-decoder.js';
import { type Command, encodeCommands } from '../resp/resp-encoder.js';
import { ClusterBackend } from './cluster-backend.js';
import { NodeSessions } from './node-sessions.js';
import { Topology } from './topology.js';

export interface ClusterOptions {
  /** Nodes to begin with. */
  readonly seeds: readonly Address[];
  readonly open: OpenSession;
  /** Gets the reply of COMMAND, of every node's first connection. */
  readonly onCommands: (reply: RespValue) => void;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
}

/** A database on the primaries of a Redis Cluster. */
export class Cluster implements Servers {
  readonly shared: Backend;
  private readonly topology: Topology;
  private readonly nodes: NodeSessions;
  private readonly backends = new Set<ClusterBackend>();

  constructor(private readonly options: ClusterOptions) {
    const { seeds, open, onCommands, log, lifecycle } = options;
    this.nodes = new NodeSessions({
      oneLane: false,
      asUser: false,
      open: (node, lane) =>
        open({
          at: parseAddress(node),
          probesTransactions: true,
          onClose: () => this.topology.refreshSoon(),
          ...(lane === 'main' ? { greeting: [['COMMAND']], onOpen: ([table]) => onCommands(table) } : {}),
        }),
    });
    this.topology = new Topology({
      seeds: [...new Set(seeds.map(nodeName))],
      ask: (node, commands) => this.ask(node, commands),
      isUp: (node) => this.nodes.isOpen(node),
      onView: () => this.viewed(),
      log,
    });
    this.shared = this.backendOf(this.nodes);
    lifecycle.onStop('kv: topology of the cluster', () => this.topology.stop());
    this.topology.start();
  }

  open(options: OwnOptions = {}): Backend {
    const { open } = this.options;
    return this.backendOf(
      new NodeSessions({
        oneLane: true,
        asUser: options.user !== undefined,
        open: (node) => open({ at: parseAddress(node), probesTransactions: true, ...options }),
      }),
    );
  }

  private backendOf(nodes: NodeSessions): ClusterBackend {
    const backend = new ClusterBackend({
      topology: this.topology,
      nodes,
      isUp: (node) => this.nodes.isOpen(node),
      onClose: () => this.backends.delete(backend),
    });
    this.backends.add(backend);
    return backend;
  }

  private async ask(node: NodeName, commands: readonly Command[]): Promise<RespValue[]> {
    const session = this.nodes.session(node, 'main');
    await session.settled();
    if (!session.isOpen) throw session.failure ?? new Error('not connected');
    return session.run(encodeCommands(commands), commands.length, (replies) => replies);
  }

  /** Primaries are connected to before they are needed. */
  private viewed(): void {
    for (const node of this.topology.primaries) this.nodes.session(node, 'main');
    for (const backend of this.backends) backend.retainPrimaries();
  }
}
