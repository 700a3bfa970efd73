import type { Database, Queryable } from '../../../lib/postgres/postgres.js';
import type { Ticket } from '../message/message.js';
import { fromNow, inPausedQueue, tableOf } from './statements.js';

/** `failing`: its place is in the dead-letter queue. */
type LostTicket = Ticket & { readonly failing: boolean };

/** Finds messages whose ticket is lost. */
export class MessageUpkeep {
  private readonly sql: ReturnType<typeof upkeepStatements>;

  constructor(
    private readonly database: Database,
    private readonly schema: string,
    /** How long after its due time a message without a claim counts as lost by RabbitMQ, in ms. */
    private readonly graceMs: number,
  ) {
    this.sql = upkeepStatements(schema);
  }

  /**
   * Tickets of at most `limit` messages that are overdue and in nobody's hands; none while another gateway sweeps.
   * @param earlyGraceMs a shorter grace, for messages that have not been swept and are older than the usual one
   */
  sweep(limit: number, earlyGraceMs = this.graceMs): Promise<LostTicket[]> {
    return this.underLock('sweep', [this.graceMs, limit, Math.max(0, this.graceMs - earlyGraceMs)]);
  }

  /** The same for the messages alone whose gateway died while their attempt waited. */
  sweepExpired(limit: number): Promise<LostTicket[]> {
    return this.underLock('sweepExpired', [this.graceMs, limit]);
  }

  private underLock(statement: 'sweep' | 'sweepExpired', values: unknown[]): Promise<LostTicket[]> {
    return this.database.transaction(async (connection) => {
      const key = `portico queue sweep ${this.schema}`;
      const lock = await this.run<{ taken: boolean }>(connection, 'sweepLock', [key]);
      if (lock.rows[0]?.taken !== true) return [];
      return (await this.run<LostTicket>(connection, statement, values)).rows;
    });
  }

  private run<Row>(
    connection: Queryable,
    statement: keyof ReturnType<typeof upkeepStatements>,
    values: unknown[],
  ) {
    return connection.query<Row>(this.sql[statement], values, `queue_${statement}`);
  }
}

/** The SQL that finds what was lost. */
function upkeepStatements(schema: string) {
  const messages = tableOf(schema, 'messages');
  const free = '(lease_until is null or lease_until < now())';
  // what has its turn in a paused queue is held instead, right after the sweep; a dead letter is written all the same
  const mayGo = `(state = 'FAILING' or not ${inPausedQueue(schema)})`;
  return {
    sweepLock: `select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as taken`,

    /**
     * Messages that should have been claimed by now, at most $2; looks again after $1 ms, doubled each time. $3 ms before
     * that, those too that nobody can be about to cancel because their sender was refused: retries, and what is old.
     */
    sweep: `update ${messages} m set sweeps = sweeps + 1,
        sweep_at = now() + least($1::float8 * 2 ^ least(sweeps, 10), 3600000) * interval '1 millisecond'
      from (
        select id from ${messages} where finished_at is null and ${free} and ${mayGo}
          and sweep_at < ${fromNow('$3::float8')} and (sweep_at < now() or (sweeps = 0
            and (attempt > 0 or created_at < (extract(epoch from now()) * 1000 - $1::float8))))
        order by sweep_at limit $2 for update skip locked
      ) lost
      where m.id = lost.id returning m.id, m.attempt, m.state = 'FAILING' as failing`,

    /**
     * Messages whose gateway died while their attempt waited, found among those that have been due longest, at most $2;
     * looks again after $1 ms. They were claimed before what waits now was due, so a bounded look finds them.
     */
    sweepExpired: `update ${messages} m set sweep_at = ${fromNow('$1::float8')}
      from (
        select id from ${messages} where lease_until < now() and finished_at is null and state = 'ACTIVE' and ${mayGo} and id in (
          select id from ${messages} where finished_at is null and sweep_at < now() order by sweep_at limit 10000
        ) limit $2 for update skip locked
      ) lost
      where m.id = lost.id returning m.id, m.attempt, false as failing`,
  } as const;
}
