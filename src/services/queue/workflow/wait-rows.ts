import type { Queryable } from '../../../lib/postgres/postgres.js';
import { tableOf } from '../store/statements.js';
import type { Run } from './run.js';
import type { KeptWait } from './wait-request.js';

/** A step that waits. */
export interface Wait {
  readonly stepId: number;
  readonly event: string;
  /** Unix time in ms. */
  readonly deadlineMs: number;
  /** The message that ends it when its time is over. */
  readonly timerId: string;
  readonly kept: KeptWait;
}

/** A wait and the run that it belongs to. */
export interface WaitOfRun {
  /** Of the run: a bigint, as text. */
  readonly no: string;
  readonly wait: Wait;
}

interface WaitRow {
  run_no: string;
  step_id: number;
  event: string;
  deadline_ms: string;
  timer_id: string;
  request: KeptWait;
}

const COLUMNS = 'w.run_no, w.step_id, w.event, w.deadline_ms, w.timer_id, w.request';

function waitOf(row: WaitRow): WaitOfRun {
  return {
    no: row.run_no,
    wait: {
      stepId: row.step_id,
      event: row.event,
      deadlineMs: Number(row.deadline_ms),
      timerId: row.timer_id,
      kept: row.request,
    },
  };
}

/** Rows of one page of waiters. */
const PAGE = 500;

/**
 * Steps that wait for events, and events that wait for steps (notes). All is changed with the run's row locked; both go
 * with the end of the run.
 */
export class WaitRows {
  private readonly waits: string;
  private readonly notes: string;
  private readonly messages: string;
  private readonly events: string;

  constructor(schema: string) {
    this.waits = tableOf(schema, 'workflow_waits');
    this.notes = tableOf(schema, 'workflow_notes');
    this.messages = tableOf(schema, 'messages');
    this.events = tableOf(schema, 'events');
  }

  async add(
    connection: Queryable,
    { no }: Run,
    { stepId, event, deadlineMs, timerId, kept }: Wait,
  ): Promise<void> {
    await connection.query(
      `insert into ${this.waits} (run_no, step_id, event, deadline_ms, timer_id, request)
        values ($1::bigint, $2, $3, $4::bigint, $5, $6::json)`,
      [no, stepId, event, deadlineMs, timerId, JSON.stringify(kept)],
      'queue_wait_add',
    );
  }

  /** The runs in which a step waits for an event, those that began last first; a page of them below `before`. */
  async runsWaiting(
    connection: Queryable,
    event: string,
    before: string | null,
    count: number,
  ): Promise<string[]> {
    const { rows } = await connection.query<{ run_no: string }>(
      `select distinct run_no from ${this.waits} where event = $1 and ($2::bigint is null or run_no < $2::bigint)
        order by run_no desc limit $3`,
      [event, before, count],
      'queue_wait_runs',
    );
    return rows.map(({ run_no: no }) => no);
  }

  /** Takes the waits for an event out of runs that are locked, and their timers with them. */
  async takeByEvent(connection: Queryable, nos: readonly string[], event: string): Promise<WaitOfRun[]> {
    const { rows } = await connection.query<WaitRow>(
      `with taken as (
          delete from ${this.waits} w where run_no = any($1::bigint[]) and event = $2 returning ${COLUMNS}
        ), ${this.stopTimers('taken')}
        select * from taken order by run_no desc, step_id`,
      [nos, event],
      'queue_wait_take_event',
    );
    return rows.map(waitOf);
  }

  /** Takes the first wait of a run for an event: one event that is meant for a run serves one step. */
  async takeFirst(connection: Queryable, no: string, event: string): Promise<WaitOfRun | undefined> {
    const { rows } = await connection.query<WaitRow>(
      `with taken as (
          delete from ${this.waits} w where run_no = $1::bigint and step_id = (
            select min(step_id) from ${this.waits} where run_no = $1::bigint and event = $2
          ) returning ${COLUMNS}
        ), ${this.stopTimers('taken')}
        select * from taken`,
      [no, event],
      'queue_wait_take_first',
    );
    return rows[0] && waitOf(rows[0]);
  }

  /** Takes the wait that a timer stands for; its timer is about to be finished by itself. */
  async takeByTimer(connection: Queryable, no: string, timerId: string): Promise<WaitOfRun | undefined> {
    const { rows } = await connection.query<WaitRow>(
      `delete from ${this.waits} w where run_no = $1::bigint and timer_id = $2 returning ${COLUMNS}`,
      [no, timerId],
      'queue_wait_take_timer',
    );
    return rows[0] && waitOf(rows[0]);
  }

  private stopTimers(taken: string): string {
    return `stopped as (
        update ${this.messages} m set state = 'CANCELED', finished_at = now(), lease_until = null
        from ${taken} t where m.id = t.timer_id and m.finished_at is null returning m.id
      ), log as (insert into ${this.events} (message_id, state) select id, 'CANCELED' from stopped)`;
  }

  /** How many events wait in a run for a step, and their bytes. */
  async noted(connection: Queryable, no: string): Promise<{ count: number; bytes: number }> {
    const { rows } = await connection.query<{ count: string; bytes: string }>(
      `select count(*) as count, coalesce(sum(length(data)), 0) as bytes from ${this.notes} where run_no = $1::bigint`,
      [no],
      'queue_note_sums',
    );
    return { count: Number(rows[0]?.count ?? 0), bytes: Number(rows[0]?.bytes ?? 0) };
  }

  async addNote(connection: Queryable, no: string, event: string, data: Buffer): Promise<void> {
    await connection.query(
      `insert into ${this.notes} (run_no, event, data) values ($1::bigint, $2, $3)`,
      [no, event, data],
      'queue_note_add',
    );
  }

  /** Takes the oldest event of that id that waits in the run. */
  async takeNote(connection: Queryable, { no }: Run, event: string): Promise<Buffer | undefined> {
    const { rows } = await connection.query<{ data: Buffer }>(
      `delete from ${this.notes} where run_no = $1::bigint and event = $2 and seq = (
          select min(seq) from ${this.notes} where run_no = $1::bigint and event = $2
        ) returning data`,
      [no, event],
      'queue_note_take',
    );
    return rows[0]?.data;
  }

  /** Every step that waits for an event, a page at a time. */
  async *waiting(database: Queryable, event: string): AsyncGenerator<WaitOfRun> {
    let last: [no: string, stepId: number] = ['0', -1];
    for (;;) {
      const { rows } = await database.query<WaitRow>(
        `select ${COLUMNS} from ${this.waits} w where event = $1 and (run_no, step_id) > ($2::bigint, $3)
          order by run_no, step_id limit ${PAGE}`,
        [event, ...last],
        'queue_wait_page',
      );
      for (const row of rows) yield waitOf(row);
      const end = rows.at(-1);
      if (end === undefined || rows.length < PAGE) return;
      last = [end.run_no, end.step_id];
    }
  }
}
