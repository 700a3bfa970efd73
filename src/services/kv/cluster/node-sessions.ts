import { HttpError } from '../../../http/errors.js';
import type { Lane } from '../commands/commands.js';
import { isLoginRefused, notConnected } from '../errors.js';
import type { NodeName } from '../redis/node-address.js';
import type { Session } from '../redis/session.js';

export interface NodeSessionsOptions {
  readonly open: (node: NodeName, lane: Lane) => Session;
  /** One session a node carries all lanes. */
  readonly oneLane: boolean;
  /** They are logged in as the user of a request, not as Portico. */
  readonly asUser: boolean;
  /** Monotonic milliseconds. */
  readonly now?: () => number;
}

interface Node {
  readonly sessions: Map<Lane, Session>;
  usedAt: number;
}

/** A node that is no primary any more is let go after so long without a request, in ms. */
const IDLE_MS = 10_000;

/** Sessions with the nodes of a cluster, opened when first wanted. */
export class NodeSessions {
  private readonly nodes = new Map<NodeName, Node>();
  private readonly now: () => number;
  private closed = false;

  constructor(private readonly options: NodeSessionsOptions) {
    this.now = options.now ?? (() => performance.now());
  }

  /** @throws HttpError `backend_unavailable` after `close` */
  session(name: NodeName, wanted: Lane): Session {
    if (this.closed) throw notConnected();
    const lane = this.options.oneLane ? 'main' : wanted;
    const node = this.nodes.get(name) ?? { sessions: new Map<Lane, Session>(), usedAt: 0 };
    this.nodes.set(name, node);
    node.usedAt = this.now();
    const session = node.sessions.get(lane) ?? this.options.open(name, lane);
    node.sessions.set(lane, session);
    return session;
  }

  /** Why there is no connection. @returns HttpError `unauthorized` when the node does not let the user of a request in */
  refusal({ failure }: Session): HttpError {
    return this.options.asUser && isLoginRefused(failure)
      ? new HttpError('unauthorized')
      : notConnected(failure);
  }

  /** Whether a node is connected to. */
  isOpen(name: NodeName): boolean {
    return this.nodes.get(name)?.sessions.get('main')?.isOpen === true;
  }

  get all(): Session[] {
    return [...this.nodes.values()].flatMap(({ sessions }) => [...sessions.values()]);
  }

  /** Closes the sessions with other nodes than `names` that nobody has used for a while. */
  retain(names: ReadonlySet<NodeName>): void {
    const since = this.now() - IDLE_MS;
    for (const [name, { sessions, usedAt }] of this.nodes) {
      const pending = [...sessions.values()].some((session) => session.pending > 0);
      if (names.has(name) || pending || usedAt > since) continue;
      this.nodes.delete(name);
      for (const session of sessions.values()) session.close();
    }
  }

  close(): void {
    this.closed = true;
    for (const session of this.all) session.close();
    this.nodes.clear();
  }
}
