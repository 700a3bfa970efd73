import type { Database } from '../../lib/postgres.js';
import type { Token } from './message.js';
import { queueStatements } from './statements.js';

/** Finds messages whose token is lost. */
export class MessageUpkeep {
  private readonly sql: ReturnType<typeof queueStatements>;

  constructor(
    private readonly database: Database,
    private readonly schema: string,
    /** How long after its due time a message without a claim counts as lost by RabbitMQ, in ms. */
    private readonly graceMs: number,
  ) {
    this.sql = queueStatements(schema);
  }

  /**
   * Tokens of at most `limit` messages that are overdue and in nobody's hands; none while another gateway sweeps.
   * @param earlyGraceMs a shorter grace, for messages that have not been swept and are older than the usual one
   */
  sweep(limit: number, earlyGraceMs = this.graceMs): Promise<(Token & { readonly failing: boolean })[]> {
    return this.database.transaction(async (connection) => {
      const key = `portico queue sweep ${this.schema}`;
      type Lock = { taken: boolean };
      const lock = await connection.query<Lock>(this.sql.sweepLock, [key], 'queue_sweepLock');
      if (lock.rows[0]?.taken !== true) return [];
      const early = Math.max(0, this.graceMs - earlyGraceMs);
      const values = [this.graceMs, limit, early];
      type Lost = Token & { failing: boolean };
      return (await connection.query<Lost>(this.sql.sweep, values, 'queue_sweep')).rows;
    });
  }
}
