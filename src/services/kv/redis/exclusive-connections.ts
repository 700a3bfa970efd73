import { HttpError } from '../../../http/errors.js';
import type { ReleaseRegistry } from '../../../lib/lifecycle.js';
import type { AclPrincipal } from '../auth/rest-tokens.js';
import type { Backend } from './backend.js';

export interface ExclusiveConnectionsOptions {
  /** @param user as whom; the database's own when `undefined` */
  readonly open: (user: AclPrincipal | undefined) => Backend;
  readonly limit: number;
  readonly lifecycle: ReleaseRegistry;
}

/** A connection that nobody uses is kept for the next one who needs it, so long, in ms. */
const IDLE_MS = 10_000;

interface Idle {
  readonly owner: string;
  readonly backend: Backend;
  readonly timer: NodeJS.Timeout;
}

/** Connections that belong to one request at a time, bounded in number: for waiting in Redis, and for commands in several steps. */
export class ExclusiveConnections {
  private readonly busy = new Map<Backend, string>();
  private idle: Idle[] = [];

  constructor(private readonly options: ExclusiveConnectionsOptions) {
    options.lifecycle.onStop('kv: exclusive connections', () => this.close());
  }

  /** Those in use. */
  get inUse(): number {
    return this.busy.size;
  }

  /**
   * Does `work` on a connection of its own. When `signal` aborts, or the work fails, the connection is closed, and with it
   * whatever it waits for or has begun.
   * @param user in whose name: connections are kept for the same one only
   * @param principal in whose name: nobody gets more than half of the places, so that some are left for others
   * @throws HttpError `overloaded` at the limit, and what `work` throws
   */
  async use<T>(
    user: AclPrincipal | undefined,
    principal: string,
    signal: AbortSignal,
    work: (backend: Backend) => Promise<T>,
  ): Promise<T> {
    this.demandPlace(principal);
    const owner = user?.key ?? '';
    const backend = this.take(owner) ?? this.options.open(user);
    this.busy.set(backend, principal);
    const leave = () => backend.close();
    signal.addEventListener('abort', leave);
    if (signal.aborted) leave();
    let reusable = false;
    try {
      const answer = await work(backend);
      reusable = !signal.aborted;
      return answer;
    } finally {
      signal.removeEventListener('abort', leave);
      this.busy.delete(backend);
      if (reusable) this.keep(owner, backend);
      else backend.close();
    }
  }

  private demandPlace(principal: string): void {
    const { limit } = this.options;
    const own = [...this.busy.values()].filter((name) => name === principal).length;
    if (this.busy.size < limit && own < Math.max(1, Math.ceil(limit / 2))) return;
    const reason = 'Too many requests need a connection of their own; nothing was executed';
    throw new HttpError('overloaded', reason);
  }

  private take(owner: string): Backend | undefined {
    const place = this.idle.findIndex((entry) => entry.owner === owner && entry.backend.isOpen);
    const [entry] = place < 0 ? [] : this.idle.splice(place, 1);
    clearTimeout(entry?.timer);
    return entry?.backend;
  }

  private keep(owner: string, backend: Backend): void {
    const timer = setTimeout(() => {
      this.idle = this.idle.filter((entry) => entry.backend !== backend);
      backend.close();
    }, IDLE_MS);
    timer.unref();
    this.idle.push({ owner, backend, timer });
  }

  private close(): void {
    for (const { backend, timer } of this.idle) {
      clearTimeout(timer);
      backend.close();
    }
    this.idle = [];
    for (const backend of this.busy.keys()) backend.close();
  }
}
