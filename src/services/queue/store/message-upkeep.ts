import type { Database, Queryable } from '../../../lib/postgres/postgres.js';
import type { Ticket } from '../message/message.js';
import { upkeepStatements } from './upkeep-statements.js';

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
