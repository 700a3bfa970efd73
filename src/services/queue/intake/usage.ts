import { HttpError } from '../../../http/errors.js';
import type { Logger } from '../../../lib/logger.js';
import type { Database } from '../../../lib/postgres/postgres.js';
import { unavailable } from '../errors.js';
import { Batcher } from '../store/batcher.js';
import { tableOf } from '../store/statements.js';

interface Wanted {
  readonly count: number;
  /** Counts whether or not it fits. */
  readonly always: boolean;
}

/** The daily limit of messages, counted in Postgres over all gateways: those that come together cost one statement. */
export class DailyUsage {
  private readonly batches: Batcher<Wanted, boolean>;
  private readonly giveBackSql: string;

  constructor(
    private readonly database: Database,
    schema: string,
    /** Messages a UTC day; 0 or less: no limit, and nothing is counted. */
    private readonly limit: number,
    /** Unix time in ms. */
    private readonly now: () => number,
    private readonly log: Logger,
  ) {
    const table = tableOf(schema, 'daily_usage');
    // the day is that of Postgres
    const sql = `insert into ${table} as u (day, messages) values ((now() at time zone 'UTC')::date, $1)
      on conflict (day) do update set messages = u.messages + excluded.messages returning messages`;
    this.giveBackSql = `update ${table} set messages = greatest(0, messages - $1) where day = (now() at time zone 'UTC')::date`;
    this.batches = new Batcher({
      size: 1_000,
      parallel: 1,
      run: async (counts) => {
        const wanted = counts.reduce((sum, { count }) => sum + count, 0);
        const { rows } = await database.query<{ messages: string }>(sql, [wanted], 'queue_usage');
        let used = Number(rows[0]?.messages) - wanted;
        const granted = counts.map(({ count, always }) => {
          if (!always && used + count > this.limit) return false;
          used += count;
          return true;
        });
        const refused = counts.reduce((sum, { count }, i) => sum + (granted[i] ? 0 : count), 0);
        if (refused > 0) await database.query(this.giveBackSql, [refused], 'queue_usage_back');
        return granted;
      },
    });
  }

  /** Counts `count` messages of a sender. @throws HttpError 429 when they are more than the day has left */
  async take(count: number): Promise<void> {
    if (this.limit <= 0 || count === 0) return;
    const granted = await this.batches.add({ count, always: false }).catch((error: unknown) => {
      throw unavailable(error);
    });
    if (granted) return;
    const tomorrow = Math.ceil((this.now() + 1) / 86_400_000) * 86_400;
    throw new HttpError(
      'too_many_requests',
      `The limit of ${this.limit} messages a day is reached (maxRequestsPerDay).`,
      {
        retryAfter: tomorrow - this.now() / 1_000,
        headers: {
          'RateLimit-Limit': String(this.limit),
          'RateLimit-Remaining': '0',
          'RateLimit-Reset': String(tomorrow),
        },
      },
    );
  }

  /** Takes back what was counted for messages that were not accepted after all; what fails here only costs the sender. */
  async giveBack(count: number): Promise<void> {
    if (this.limit <= 0 || count === 0) return;
    await this.database.query(this.giveBackSql, [count], 'queue_usage_back').catch((err: unknown) => {
      this.log.warn({ err, count }, 'queue: messages that were not accepted stay counted for the day');
    });
  }

  /** Counts messages that nobody can be refused: callbacks, and those of schedules. */
  async charge(count: number): Promise<void> {
    if (this.limit > 0 && count > 0) await this.batches.add({ count, always: true });
  }
}
