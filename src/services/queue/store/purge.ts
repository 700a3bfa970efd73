import type { Logger } from '../../../lib/logger.js';
import type { Database } from '../../../lib/postgres/postgres.js';
import { isTimeout } from '../errors.js';
import { fromNow, tableOf } from './statements.js';
import { StepSize } from './step-size.js';

/** Rows that one statement removes at most. */
const STEP = 2_000;
/** Each kind of rows has so long in one run, in ms; what is left is the next run's. */
const KIND_MS = 1_000;
/** A walk over all flow-control keys is begun no sooner than this after the one before, in ms. */
const FLOW_KEYS_EVERY_MS = 60_000;

export interface PurgeAges {
  /** How long ended messages are kept, in ms. */
  readonly finishedMs: number;
  /** The same of dead letters. */
  readonly deadMs: number;
}

/** What a step came to: whether there is more to do, now. */
interface Step {
  readonly hasMore: boolean;
}

interface Kind {
  readonly name: string;
  readonly step: (size: number) => Promise<Step>;
  readonly size: StepSize;
}

/**
 * Removes what has been kept long enough: each kind by itself, in steps of a bounded number of rows, for a bounded time. A
 * kind whose statements fail does not hold up the others.
 */
export class Purge {
  private readonly kinds: readonly Kind[];

  constructor(
    private readonly database: Database,
    schema: string,
    ages: PurgeAges,
    private readonly log: Logger,
  ) {
    const sql = purgeStatements(schema);
    const oldest = (statement: string, values: readonly unknown[]) => async (size: number) => {
      const { rows } = await database.query<{ found: number }>(statement, [size, ...values]);
      return { hasMore: rows[0]?.found === size };
    };
    const walk = (statement: string, values: readonly unknown[]) => {
      let after = '';
      return async (size: number) => {
        const { rows } = await database.query<{ found: number; last: string | null }>(statement, [
          size,
          after,
          ...values,
        ]);
        const hasMore = rows[0]?.found === size;
        after = hasMore ? (rows[0]?.last ?? '') : '';
        return { hasMore };
      };
    };
    const kind = (name: string, step: Kind['step']) => ({ name, step, size: new StepSize(STEP) });
    this.kinds = [
      kind('dead letters', oldest(sql.deadLetters, [ages.deadMs])),
      kind('messages', oldest(sql.messages, [ages.finishedMs])),
      kind('workflow runs', oldest(sql.runs, [ages.finishedMs])),
      kind('deduplication', oldest(sql.deduplication, [])),
      kind('attempts under flow-control keys', walk(sql.running, [])),
      kind('flow-control keys', this.flowKeys(sql, ages.finishedMs)),
    ];
  }

  /**
   * The keys that nobody uses any more, once in a while. A publish under a key has its row locked until it is committed;
   * whoever comes later waits for the end of this and makes the key anew.
   */
  private flowKeys(sql: ReturnType<typeof purgeStatements>, ageMs: number): Kind['step'] {
    let after = '';
    let nextAt = 0;
    return async (size) => {
      if (performance.now() < nextAt) return { hasMore: false };
      const found = await this.database.query<{ key: string }>(sql.flowKeys, [size, after]);
      const keys = found.rows.map(({ key }) => key);
      await this.database.transaction(async (connection) => {
        const idle = await connection.query<{ key: string }>(sql.lockIdleKeys, [keys, ageMs]);
        // a statement of its own sees what was committed until the keys were locked
        await connection.query(sql.deleteKeys, [idle.rows.map(({ key }) => key)]);
      });
      const hasMore = keys.length === size;
      after = hasMore ? (keys.at(-1) ?? '') : '';
      if (!hasMore) nextAt = performance.now() + FLOW_KEYS_EVERY_MS;
      return { hasMore };
    };
  }

  /** @param isOver whether to stop after the present step */
  async run(isOver: () => boolean): Promise<void> {
    for (const kind of this.kinds) {
      if (isOver()) return;
      await this.purge(kind, isOver).catch((err: unknown) => {
        this.log.warn({ err, kind: kind.name }, 'queue: old rows were not removed yet');
      });
    }
  }

  private async purge({ name, step, size }: Kind, isOver: () => boolean): Promise<void> {
    const started = performance.now();
    for (let now = started; now - started < KIND_MS && !isOver(); ) {
      const { hasMore } = await step(size.size).catch((error: unknown) => {
        if (!isTimeout(error) || size.size === 1) throw error;
        this.log.debug({ kind: name, rows: size.size }, 'queue: a step of the clean-up took too long');
        size.halve();
        return { hasMore: true };
      });
      if (!hasMore) return;
      const ended = performance.now();
      size.took(ended - now);
      now = ended;
    }
  }
}

/** $1 is the number of rows. `found`: how many rows of that number there were; a walk goes on behind `last`. */
function purgeStatements(schema: string) {
  const messages = tableOf(schema, 'messages');
  const letters = tableOf(schema, 'dead_letters');
  const keys = tableOf(schema, 'deduplication');
  const running = tableOf(schema, 'flow_running');
  const controls = tableOf(schema, 'flow_controls');
  const runs = tableOf(schema, 'workflow_runs');
  return {
    /** $2 ms. The messages go when their own time is over; what the destination said last goes at once */
    deadLetters: `with old as materialized (
        select id from ${letters} where created_at < ${fromNow('-$2::float8')} order by created_at, id limit $1
      ), gone as (
        delete from ${letters} d using old where d.id = old.id returning d.message_id
      ), freed as (
        update ${messages} m set ${FREED} from gone where m.id = gone.message_id
      )
      select count(*)::int as found from old`,
    /** $2 ms */
    messages: `with old as materialized (
        select id from ${messages} where finished_at < ${fromNow('-$2::float8')} and finished_at is not null and not dead
        order by finished_at limit $1
      ), gone as (delete from ${messages} m using old where m.id = old.id)
      select count(*)::int as found from old`,
    /** $2 ms. One that failed stays as long as its dead letter, and until whoever is to be told of it has been */
    runs: `with old as materialized (
        select no from ${runs} r where ended_at < ${fromNow('-$2::float8')}
          and not exists (select from ${letters} d where d.run_no = r.no)
          and not exists (select from ${messages} m where m.run_no = r.no and m.finished_at is null)
        order by ended_at limit $1
      ), gone as (delete from ${runs} r using old where r.no = old.no)
      select count(*)::int as found from old`,
    deduplication: `with old as materialized (
        select key from ${keys} where expires_at < now() order by expires_at limit $1
      ), gone as (delete from ${keys} k using old where k.key = old.key and k.expires_at < now())
      select count(*)::int as found from old`,
    /** Attempts whose message was cancelled or ended otherwise meanwhile */
    running: `with step as materialized (
        select message_id from ${running} where message_id > $2 order by message_id limit $1
      ), gone as (
        delete from ${running} r using step where r.message_id = step.message_id
          and not exists (select from ${messages} m where m.id = r.message_id and m.finished_at is null)
      )
      select count(*)::int as found, max(message_id) as last from step`,
    flowKeys: `select key from ${controls} where key > $2 order by key limit $1`,
    /** Of the keys $1 those that nobody has set anything for and whose last attempt is $2 ms ago */
    lockIdleKeys: `select key from ${controls}
      where key = any($1::text[]) and not paused and not pinned_parallelism and not pinned_rate
        and period_start + period * interval '1 second' < ${fromNow('-$2::float8')}
      order by key for update skip locked`,
    deleteKeys: `delete from ${controls} c where key = any($1::text[])
      and not exists (select from ${messages} m where m.flow_key = c.key and m.finished_at is null)`,
  } as const;
}

/** What changes in a message when its dead letter is gone. */
export const FREED =
  'dead = false, failure_error = null, failure_status = null, failure_headers = null, failure_body = null';
