import { classifyDatabaseError, type Database, quoteIdentifier } from '../../../lib/postgres/postgres.js';
import { tableOf } from './statements.js';

const DAY_MS = 86_400_000;
/** Days for which partitions are made ahead. */
const AHEAD = 2;
/** Entries of the default partition that one statement removes, and statements of one run. */
const STEP = 2_000;
const STEPS = 10;

/** The log's tables, one a day. */
export class EventPartitions {
  private readonly events: string;
  /** The default partition: what came while no gateway made the day's, after a pause of the whole machine, say. */
  private readonly others: string;
  private keptFor: string | undefined;

  constructor(
    private readonly database: Database,
    private readonly schema: string,
    private readonly retentionMs: number,
  ) {
    this.events = tableOf(schema, 'events');
    this.others = tableOf(schema, 'events_other');
  }

  /**
   * Of one day, from its first moment to that of the next. A day of which entries are in the default partition stays there
   * whole: to move them would stop all deliveries for as long as it takes.
   */
  private async makePartition(from: string, to: string): Promise<void> {
    const name = tableOf(this.schema, `events_${from.replaceAll('-', '')}`);
    const [first, end] = [`'${from} 00:00:00+00'`, `'${to} 00:00:00+00'`];
    const create = `create table if not exists ${name} partition of ${this.events} for values from (${first}) to (${end})`;
    await this.database.query(create).catch((error: unknown) => {
      if (!isOccupied(error)) throw error;
    });
  }

  /** Removes old entries of the default partition; the others are dropped whole. @returns whether there are more */
  private async removeOld(now: number): Promise<boolean> {
    const { rowCount } = await this.database.query(
      `delete from ${this.others} where (at, seq) in (
        select at, seq from ${this.others} where at < $1 order by at, seq limit ${STEP}
      )`,
      [new Date(now - this.retentionMs)],
    );
    return rowCount === STEP;
  }

  /** Makes the partitions of the coming days and drops those that are over. Several gateways may do it at once. */
  async keep(now: number): Promise<void> {
    for (let steps = 0; steps < STEPS && (await this.removeOld(now)); steps++);
    if (this.keptFor !== dayOf(now)) await this.make(now);
  }

  /** The same, whatever was done for this day before: the tables may be new. */
  async make(now: number): Promise<void> {
    for (let day = 0; day <= AHEAD; day++) {
      const from = dayOf(now + day * DAY_MS);
      const to = dayOf(now + (day + 1) * DAY_MS);
      await this.makePartition(from, to);
    }
    const { rows } = await this.database.query<{ name: string }>(
      `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = '${this.events}'::regclass`,
    );
    const oldest = `events_${dayOf(now - this.retentionMs - DAY_MS).replaceAll('-', '')}`;
    for (const { name } of rows) {
      if (/^events_\d{8}$/.test(name) && name < oldest)
        await this.database.query(
          `drop table if exists ${quoteIdentifier(this.schema)}.${quoteIdentifier(name)}`,
        );
    }
    this.keptFor = dayOf(now);
  }
}

/** The default partition has entries of the new one's day. */
function isOccupied(error: unknown): boolean {
  return classifyDatabaseError(error).sqlState === '23514';
}

/** `2026-01-31`, in UTC. */
function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
