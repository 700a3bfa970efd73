import { HttpError } from '../../http/errors.js';
import type { ReleaseRegistry } from '../../lib/lifecycle.js';
import { notConnected, outcomeUnknown } from './errors.js';
import type { Session } from './session.js';

export interface ExclusiveConnectionsOptions {
  readonly limit: number;
  readonly lifecycle: ReleaseRegistry;
}

/** A connection that nobody uses is kept for the next one who needs it, so long, in ms. */
const IDLE_MS = 10_000;

interface Idle {
  readonly owner: string;
  readonly session: Session;
  readonly timer: NodeJS.Timeout;
}

/** Connections that belong to one request at a time, bounded in number: for waiting in Redis, and for commands in several steps. */
export class ExclusiveConnections {
  private readonly busy = new Set<Session>();
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
   * @param owner in whose name: connections are kept for the same one only
   * @throws HttpError `overloaded` at the limit, `backend_unavailable`, and what `work` throws
   */
  async use<T>(
    owner: string,
    open: () => Session,
    signal: AbortSignal,
    work: (session: Session) => Promise<T>,
  ): Promise<T> {
    if (this.busy.size >= this.options.limit)
      throw new HttpError(
        'overloaded',
        'Too many requests need a connection of their own; nothing was executed',
      );
    const session = this.take(owner) ?? open();
    this.busy.add(session);
    const leave = () => session.close();
    signal.addEventListener('abort', leave);
    let reusable = false;
    try {
      await session.settled();
      if (signal.aborted) throw outcomeUnknown();
      if (!session.isOpen) throw notConnected(session.failure);
      const answer = await work(session);
      reusable = !signal.aborted;
      return answer;
    } finally {
      signal.removeEventListener('abort', leave);
      this.busy.delete(session);
      if (reusable) this.keep(owner, session);
      else session.close();
    }
  }

  private take(owner: string): Session | undefined {
    const place = this.idle.findIndex((entry) => entry.owner === owner && entry.session.isOpen);
    const [entry] = place < 0 ? [] : this.idle.splice(place, 1);
    clearTimeout(entry?.timer);
    return entry?.session;
  }

  private keep(owner: string, session: Session): void {
    const timer = setTimeout(() => {
      this.idle = this.idle.filter((entry) => entry.session !== session);
      session.close();
    }, IDLE_MS);
    timer.unref();
    this.idle.push({ owner, session, timer });
  }

  private close(): void {
    for (const { session, timer } of this.idle) {
      clearTimeout(timer);
      session.close();
    }
    this.idle = [];
    for (const session of this.busy) session.close();
  }
}
