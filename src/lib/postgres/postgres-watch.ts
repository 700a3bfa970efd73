import type pg from 'pg';
import { groupBy } from '../group-by.js';
import type { ReleaseRegistry } from '../lifecycle.js';
import type { Logger } from '../logger.js';
import { isConnectTimeout } from './postgres-errors.js';

/** So long no statement may be answered before Postgres is asked whether it lives, in ms. */
const TICK_MS = 1_000;

/** One look may fail because this process itself had no time to see the answer. */
const LOOKS = 2;

/** A connection in use, and the tick after which it was lent. */
type Waiting = readonly [pg.ClientBase, number];

/**
 * Notices a server that takes connections and says nothing (stopped, cut off): the time limit of a statement is long, and until
 * then nothing tells a slow statement from a dead server. When no statement has been answered for a second, a new connection is
 * tried; when that is not made twice in a row, all that wait for an answer lose their connection, and so are told.
 */
export class SilenceWatch {
  /** Connections in use, with the tick after which they were lent. */
  private readonly busy = new Map<pg.ClientBase, number>();
  private timer: NodeJS.Timeout | undefined;
  private ticks = 0;
  private answers = 0;
  private answersBefore = 0;

  constructor(
    /** Makes a connection to the same server outside the pool, with the time limit for connecting. */
    private readonly beside: (other: pg.ClientBase) => pg.Client,
    private readonly log: Logger,
    lifecycle: ReleaseRegistry,
  ) {
    lifecycle.onStop('postgres watch', async () => clearTimeout(this.timer));
  }

  lent(client: pg.ClientBase): void {
    this.busy.set(client, this.ticks);
    this.timer ??= this.later();
  }

  returned(client: pg.ClientBase): void {
    this.busy.delete(client);
    this.answers++;
  }

  private later(): NodeJS.Timeout {
    return setTimeout(() => void this.tick(), TICK_MS).unref();
  }

  private async tick(): Promise<void> {
    const waiting = [...this.busy].filter(([, since]) => since < this.ticks);
    if (waiting.length > 0 && this.answers === this.answersBefore) await this.look(waiting);
    this.answersBefore = this.answers;
    this.ticks++;
    this.timer = this.busy.size === 0 ? undefined : this.later();
  }

  /** Of several hosts one may be silent, whose connections are waiting for what another one has taken over. */
  private async look(waiting: readonly Waiting[]): Promise<void> {
    const servers = groupBy(
      waiting,
      ([client]) => `${(client as pg.Client).host} ${(client as pg.Client).port}`,
    );
    await Promise.all([...servers.values()].map((those) => this.lookAt(those)));
  }

  private async lookAt(waiting: readonly Waiting[]): Promise<void> {
    const [[first]] = waiting as [Waiting];
    for (let looks = 0; looks < LOOKS; looks++) if (await this.isAlive(first)) return;
    if (this.answers !== this.answersBefore) return;
    this.log.warn({ connections: waiting.length }, 'postgres: takes connections and does not answer');
    for (const [client, since] of waiting) {
      // while it is in use, node-postgres closes the socket at once and refuses what runs on it
      if (this.busy.get(client) === since) (client as pg.Client).end().catch(() => undefined);
    }
  }

  /** Whatever it says, an error too, it lives; one that refuses connections has ended those that there were. */
  private async isAlive(other: pg.ClientBase): Promise<boolean> {
    const client = this.beside(other);
    client.on('error', () => undefined);
    try {
      await client.connect();
      return true;
    } catch (error) {
      return !isConnectTimeout(error);
    } finally {
      client.end().catch(() => undefined);
    }
  }
}
