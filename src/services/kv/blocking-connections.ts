import { HttpError } from '../../http/errors.js';
import type { ReleaseRegistry } from '../../lib/lifecycle.js';
import type { Row } from './commands.js';
import { notConnected, outcomeUnknown } from './errors.js';
import { type Finish, rowsPayload } from './runner.js';
import type { Session } from './session.js';

export interface BlockingConnectionsOptions {
  readonly limit: number;
  readonly lifecycle: ReleaseRegistry;
}

/** A connection that nobody uses is kept for the next one who waits, so long, in ms. */
const IDLE_MS = 10_000;

interface Idle {
  readonly owner: string;
  readonly session: Session;
  readonly timer: NodeJS.Timeout;
}

/** Connections on which one request at a time waits in Redis (XREAD BLOCK), bounded in number. */
export class BlockingConnections {
  private readonly busy = new Set<Session>();
  private idle: Idle[] = [];

  constructor(private readonly options: BlockingConnectionsOptions) {
    options.lifecycle.onStop('kv: blocking connections', () => this.close());
  }

  /** Requests that wait now. */
  get waiting(): number {
    return this.busy.size;
  }

  /**
   * Runs `rows` on a connection of their own; when `signal` aborts, the connection is closed and Redis stops waiting.
   * @param owner in whose name: connections are kept for the same one only
   * @throws HttpError `overloaded` at the limit, else as `Runner.run`
   */
  async run<T>(
    rows: readonly Row[],
    owner: string,
    open: () => Session,
    signal: AbortSignal,
    finish: Finish<T>,
  ): Promise<T> {
    if (this.busy.size >= this.options.limit)
      throw new HttpError('overloaded', 'Too many requests wait on blocking commands; nothing was executed');
    const session = this.take(owner) ?? open();
    this.busy.add(session);
    const leave = () => session.close();
    signal.addEventListener('abort', leave);
    let reusable = false;
    try {
      await session.settled();
      if (signal.aborted) throw outcomeUnknown();
      if (!session.isOpen) throw notConnected(session.failure);
      const answer = await session.run(rowsPayload(rows), rows.length, finish);
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
