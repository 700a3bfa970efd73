import { HttpError } from '../../../http/errors.js';
import type { Database, Queryable, QueryResult } from '../../../lib/postgres/postgres.js';
import { tableOf } from '../store/statements.js';
import { nextTime } from './cron.js';

/** What a schedule sends at its times: a publish as it came, to be read anew each time. */
export interface ScheduleDefinition {
  readonly id: string;
  readonly cron: string;
  readonly destination: string;
  /** Instructions by the names under which they were sent. */
  readonly controls: Readonly<Record<string, string>>;
  /** The creator's headers that may be forwarded. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly callerIp: string | null;
}

export interface Schedule extends ScheduleDefinition {
  readonly paused: boolean;
  /** Unix times in ms. */
  readonly createdAt: number;
  readonly nextAt: number | null;
  readonly lastAt: number | null;
  /** States of the last run's messages, by their ids; those that are gone are not there. */
  readonly lastStates: Readonly<Record<string, 'IN_PROGRESS' | 'SUCCESS' | 'FAIL'>>;
}

interface Row {
  id: string;
  cron: string;
  destination: string;
  controls: Record<string, string>;
  headers: Record<string, string>;
  body: Buffer;
  caller_ip: string | null;
  paused: boolean;
  created_ms: number;
  next_ms: number | null;
  last_ms: number | null;
  states: Record<string, 'IN_PROGRESS' | 'SUCCESS' | 'FAIL'> | null;
  now_ms: number;
}

type PageRow = Row & {
  /** Unix time in microseconds, as text: with the id the place in the order. */
  place: string;
};

/** Of a step of the list: schedules, and bytes of bodies and headers; a single schedule may have more. */
const PAGE_ROWS = 100;
const PAGE_BYTES = 256 * 1024;

/** Schedules in Postgres. Times are Postgres' own, so a gateway's clock moves no schedule. */
export class Schedules {
  private readonly sql: ReturnType<typeof statements>;

  constructor(
    private readonly database: Database,
    private readonly schema: string,
    private readonly maxSchedules: number,
  ) {
    this.sql = statements(schema);
  }

  /** Makes a schedule, or replaces the one with this id as a whole. @throws HttpError 412 over the limit */
  async put(definition: ScheduleDefinition): Promise<void> {
    const { id, cron, destination, controls, headers, body, callerIp } = definition;
    await this.database.transaction(async (connection) => {
      const key = `portico queue schedules ${this.schema}`;
      const { rows } = await connection.query<{ now_ms: number }>(this.sql.lock, [key]);
      const others = await connection.query<{ count: number }>(this.sql.others, [id]);
      if ((others.rows[0]?.count ?? 0) >= this.maxSchedules)
        throw new HttpError(
          'limit_reached',
          `There are at most ${this.maxSchedules} schedules (maxSchedules).`,
        );
      const next = nextTime(cron, rows[0]?.now_ms ?? 0);
      const given = [JSON.stringify(controls), JSON.stringify(headers), body, callerIp, dateOf(next)];
      await connection.query(this.sql.put, [id, cron, destination, ...given]);
    });
  }

  async find(id: string): Promise<Schedule | undefined> {
    const [row] = (await this.database.query<Row>(this.sql.find, [id])).rows;
    return row && scheduleOf(row);
  }

  /** All schedules in the order of their making, read a step at a time. */
  async *list(): AsyncGenerator<Schedule> {
    for (let last: PageRow | undefined; ; ) {
      const place = [last?.place ?? null, last?.id ?? null];
      const { rows }: QueryResult<PageRow> = await this.database.query<PageRow>(this.sql.page, place);
      yield* rows.map(scheduleOf);
      last = rows.at(-1);
      if (last === undefined) return;
    }
  }

  async delete(id: string): Promise<boolean> {
    return (await this.database.query(this.sql.delete, [id])).rowCount > 0;
  }

  /** Times that pass while a schedule is paused are skipped. @returns false when there is none */
  async setPaused(id: string, paused: boolean): Promise<boolean> {
    return this.database.transaction(async (connection) => {
      const [row] = (await connection.query<Row>(this.sql.one, [id])).rows;
      if (row === undefined) return false;
      if (row.paused !== paused)
        await connection.query(this.sql.setPaused, [id, paused, dateOf(nextTime(row.cron, row.now_ms))]);
      return true;
    });
  }

  /**
   * Runs one schedule whose time has come: what `run` does on the connection and the next time are committed together,
   * under the row's lock, so each time is run once whichever gateway comes first. Of times that were missed only one is run.
   * @param run @returns the ids of the messages
   * @param except ids of schedules that are left out
   * @returns whether there was one
   */
  runNext(
    run: (connection: Queryable, schedule: Schedule) => Promise<readonly string[]>,
    except: readonly string[],
  ): Promise<boolean> {
    return this.database.transaction(async (connection) => {
      const [row] = (await connection.query<Row>(this.sql.due, [except], 'queue_schedule_due')).rows;
      if (row === undefined) return false;
      const ids = await run(connection, scheduleOf(row));
      await connection.query(this.sql.ran, [row.id, dateOf(nextTime(row.cron, row.now_ms)), ids]);
      return true;
    });
  }
}

function dateOf(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}

function scheduleOf(row: Row): Schedule {
  return {
    id: row.id,
    cron: row.cron,
    destination: row.destination,
    controls: row.controls,
    headers: row.headers,
    body: row.body,
    callerIp: row.caller_ip,
    paused: row.paused,
    createdAt: row.created_ms,
    nextAt: row.next_ms,
    lastAt: row.last_ms,
    lastStates: row.states ?? {},
  };
}

function statements(schema: string) {
  const schedules = tableOf(schema, 'schedules');
  const ms = (time: string) => `floor(extract(epoch from ${time}) * 1000)::float8`;
  const columns = `id, cron, destination, controls, headers, body, caller_ip, paused, ${ms('created_at')} as created_ms,
    ${ms('next_at')} as next_ms, ${ms('last_at')} as last_ms, ${ms('now()')} as now_ms`;
  const states = `(select json_object_agg(m.id, case when m.finished_at is null then 'IN_PROGRESS'
      when m.state = 'DELIVERED' then 'SUCCESS' else 'FAIL' end)
    from ${tableOf(schema, 'messages')} m where m.id = any(last_messages))`;
  return {
    /** Limits are counted, so one at a time. */
    lock: `select pg_advisory_xact_lock(hashtextextended($1, 0)), ${ms('now()')} as now_ms`,
    others: `select count(*)::int as count from ${schedules} where id <> $1`,
    put: `insert into ${schedules} (id, cron, destination, controls, headers, body, caller_ip, next_at)
      values ($1, $2, $3, $4, $5, $6, $7, $8)
      on conflict (id) do update set cron = excluded.cron, destination = excluded.destination,
        controls = excluded.controls, headers = excluded.headers, body = excluded.body,
        caller_ip = excluded.caller_ip, next_at = excluded.next_at, paused = false`,
    find: `select ${columns}, ${states} as states from ${schedules} where id = $1`,
    /** $1 and $2 the place behind which it begins, or null */
    page: `select ${columns}, ${states} as states, (extract(epoch from created_at) * 1000000)::bigint::text as place
      from (
        select *, sum(size) over (order by created_at, id) - size as bytes_before
        from (
          select *, octet_length(body) + octet_length(concat(controls, headers)) as size from ${schedules}
          where $1::text is null or (created_at, id) > (timestamptz 'epoch' + $1::bigint * interval '1 microsecond', $2::text)
          order by created_at, id limit ${PAGE_ROWS}
        ) step
      ) sized
      where bytes_before <= ${PAGE_BYTES} order by created_at, id`,
    one: `select ${columns}, null as states from ${schedules} where id = $1 for update`,
    delete: `delete from ${schedules} where id = $1`,
    setPaused: `update ${schedules} set paused = $2, next_at = $3 where id = $1`,
    /** $1 ids of those that are left out */
    due: `select ${columns}, null as states from ${schedules}
      where not paused and next_at <= now() and id <> all($1::text[])
      order by next_at limit 1 for update skip locked`,
    ran: `update ${schedules} set next_at = $2, last_at = now(), last_messages = $3 where id = $1`,
  } as const;
}
