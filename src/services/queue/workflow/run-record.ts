import type { Queryable } from '../../../lib/postgres/postgres.js';
import { readAgain } from '../../../lib/postgres/read-again.js';
import type { HeaderMap, MessageDetails, RunRole } from '../message/message.js';
import { tableOf } from '../store/statements.js';
import type { Run, RunSettings, RunState, StepKind, StepPlace } from './run.js';
import { RUN_COLUMNS, runOf } from './run-rows.js';

/** A run as its log begins. */
export interface LoggedRun extends Run {
  /** Unix time in ms. */
  readonly endedMs: number | null;
  readonly resultBytes: number;
  /** Whether what failed it can still be resumed. */
  readonly hasDeadLetter: boolean;
}

/** A step without its body. */
export interface LoggedStep extends StepPlace {
  readonly seq: number;
  readonly messageId: string;
  readonly kind: StepKind;
  /** Of waits and of invocations. */
  readonly meta: unknown;
  /** Unix time in ms. */
  readonly createdMs: number;
  /** Of the body. */
  readonly bytes: number;
}

/** A message of a run that is not delivered, or that calls a third party. */
export interface LoggedMessage {
  readonly id: string;
  readonly state: string;
  readonly role: RunRole;
  readonly seq: number;
  readonly attempt: number;
  /** How often it was begun. */
  readonly claims: number;
  readonly maxRetries: number;
  /** Unix time in ms of the next attempt. */
  readonly dueMs: number;
  readonly bytes: number;
}

/** An attempt that failed. */
export interface LoggedError {
  readonly messageId: string;
  /** Unix time in ms. */
  readonly timeMs: number;
  /** Why there was no response. */
  readonly error: string | null;
  readonly status: number;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly body: Buffer;
}

export interface LoggedWait {
  readonly stepId: number;
  readonly event: string;
  /** Unix time in ms. */
  readonly deadlineMs: number;
}

/** What a third party was asked. */
export interface LoggedCall {
  readonly url: string;
  readonly method: string;
  readonly headers: HeaderMap;
  readonly details: MessageDetails | null;
  readonly body: Buffer;
}

/** A run that another one started. */
export interface LoggedChild {
  readonly state: RunState;
  readonly settings: RunSettings;
  readonly payload: Buffer | null;
  readonly result: Buffer | null;
}

/** All that is known of a run but the bodies of its steps. */
export interface RunRecord {
  readonly run: LoggedRun;
  readonly steps: readonly LoggedStep[];
  readonly waits: readonly LoggedWait[];
  readonly messages: readonly LoggedMessage[];
  /** Of messages that are not delivered, oldest first. */
  readonly errors: readonly LoggedError[];
  /** The last answer to the message that failed the run, as long as that has a dead letter. */
  readonly lastAnswer: LoggedError | undefined;
}

/** Newest errors of one run that are shown, and bytes of their bodies: as many bodies as there are attempts would be any number. */
const [MAX_ERRORS, MAX_ERROR_BYTES] = [500, 1024 * 1024] as const;

const ms = (column: string) => `round(extract(epoch from ${column}) * 1000)::float8`;

/** Reads what the log shows of runs. */
export class RunRecords {
  private readonly table: (name: string) => string;

  constructor(
    private readonly database: Queryable,
    private readonly schema: string,
    private readonly retentionMs: number,
  ) {
    this.table = (name) => tableOf(schema, name);
  }

  /** The same for one reply. @param hasBegun whether its first part is sent, which no error can take back */
  forReply(hasBegun: () => boolean): RunRecords {
    return new RunRecords(readAgain(this.database, hasBegun), this.schema, this.retentionMs);
  }

  /** Runs by their numbers, in that order; those that are gone are left out. */
  async runs(nos: readonly string[]): Promise<LoggedRun[]> {
    type Row = Parameters<typeof runOf>[0] & {
      ended_ms: number | null;
      result_bytes: number;
      has_letter: boolean;
    };
    const { rows } = await this.database.query<Row>(
      `select ${RUN_COLUMNS}, ${ms('r.ended_at')} as ended_ms, coalesce(octet_length(r.result), 0) as result_bytes,
          exists (select from ${this.table('dead_letters')} d where d.id = r.failure ->> 'dlqId') as has_letter
        from ${this.table('workflow_runs')} r where r.no = any($1::bigint[]) order by array_position($1::bigint[], r.no)`,
      [nos],
    );
    return rows.map((row) => ({
      ...runOf(row),
      endedMs: row.ended_ms,
      resultBytes: row.result_bytes,
      hasDeadLetter: row.has_letter,
    }));
  }

  async record(run: LoggedRun): Promise<RunRecord> {
    const steps = await this.steps(run);
    const { failure } = run;
    const messages = await this.messages(run, [
      ...steps.map(({ messageId }) => messageId),
      ...(failure?.callback ? [failure.callback.messageId] : []),
    ]);
    const failed = messages.filter(({ state }) => state !== 'DELIVERED').map(({ id }) => id);
    return {
      run,
      steps,
      messages,
      waits: run.isOver ? [] : await this.waits(run),
      errors: failed.length === 0 ? [] : await this.errors(failed),
      lastAnswer: failure === null ? undefined : await this.lastAnswer(failure.messageId),
    };
  }

  /**
   * Bodies of steps by their places.
   * @param bytes that they come to
   */
  async bodies({ no }: Run, seqs: readonly number[], bytes: number): Promise<Map<number, Buffer>> {
    if (seqs.length === 0) return new Map();
    const { rows } = await this.database.query<{ seq: number; body: Buffer }>(
      `select seq, body from ${this.table('workflow_steps')} where run_no = $1::bigint and seq = any($2::int[])`,
      [no, seqs],
      'queue_run_bodies',
      bytes,
    );
    return new Map(rows.map(({ seq, body }) => [seq, body]));
  }

  async result({ no, resultBytes }: LoggedRun): Promise<Buffer> {
    const { rows } = await this.database.query<{ result: Buffer | null }>(
      `select result from ${this.table('workflow_runs')} where no = $1::bigint`,
      [no],
      'queue_run_result',
      resultBytes,
    );
    return rows[0]?.result ?? Buffer.alloc(0);
  }

  /** Calls by the ids of their messages, as long as these are kept. */
  async calls(ids: readonly string[]): Promise<Map<string, LoggedCall>> {
    if (ids.length === 0) return new Map();
    const { rows } = await this.database.query<LoggedCall & { id: string }>(
      `select id, url, method, headers, details, body from ${this.table('messages')} where id = any($1::text[])`,
      [ids],
      'queue_run_calls',
    );
    return new Map(rows.map((row) => [row.id, row]));
  }

  async child(id: string, createdMs: number): Promise<LoggedChild | undefined> {
    const { rows } = await this.database.query<LoggedChild>(
      `select r.state, r.settings, s.body as payload, r.result from ${this.table('workflow_runs')} r
        left join ${this.table('workflow_steps')} s on s.run_no = r.no and s.seq = 0
        where r.id = $1 and r.created_ms = $2::bigint`,
      [id, createdMs],
      'queue_run_child',
    );
    return rows[0];
  }

  private async steps({ no, nextSeq }: Run): Promise<LoggedStep[]> {
    const { rows } = await this.database.query<LoggedStep>(
      `select seq, message_id as "messageId", kind, step_id as "stepId", target_step as "targetStep", concurrent, name, type,
          case when kind in ('wait', 'invoke') then meta end as meta, ${ms('created_at')} as "createdMs",
          octet_length(body) as bytes
        from ${this.table('workflow_steps')} where run_no = $1::bigint and seq < $2 order by seq`,
      [no, nextSeq],
      'queue_run_logged_steps',
    );
    return rows;
  }

  private async waits({ no }: Run): Promise<LoggedWait[]> {
    const { rows } = await this.database.query<LoggedWait>(
      `select step_id as "stepId", event, deadline_ms::float8 as "deadlineMs" from ${this.table('workflow_waits')}
        where run_no = $1::bigint`,
      [no],
      'queue_run_logged_waits',
    );
    return rows;
  }

  /** An invocation names the first message of another run. */
  private async messages({ no }: Run, ids: readonly string[]): Promise<LoggedMessage[]> {
    const { rows } = await this.database.query<LoggedMessage>(
      `select id, state, run_role as role, run_seq as seq, attempt, claims, max_retries as "maxRetries",
          ${ms('due_at')} as "dueMs", octet_length(body) as bytes
        from ${this.table('messages')}
        where id = any($1::text[]) and run_no = $2::bigint and run_role <> 'timer'
          and (state <> 'DELIVERED' or run_role = 'call')
        order by seq`,
      [ids, no],
      'queue_run_logged_messages',
    );
    return rows;
  }

  private async errors(ids: readonly string[]): Promise<LoggedError[]> {
    const { rows } = await this.database.query<LoggedError>(
      `with newest as (
          select e.message_id as "messageId", ${ms('e.at')} as "timeMs", e.error, coalesce(e.response_status, 0) as status,
            coalesce(e.response_headers, '{}') as headers, coalesce(e.response_body, '') as body,
            row_number() over (order by e.at desc, e.seq desc) as row
          from ${this.table('events')} e
          where e.message_id = any($1::text[]) and e.state = 'ERROR' and e.at >= now() - $2::float8 * interval '1 millisecond'
          order by e.at desc, e.seq desc limit $3
        ), sized as (select *, sum(octet_length(body)) over (order by row) as bytes from newest)
        select "messageId", "timeMs", error, status, headers, body from sized where row = 1 or bytes <= $4 order by row desc`,
      [ids, this.retentionMs, MAX_ERRORS, MAX_ERROR_BYTES],
      'queue_run_logged_errors',
    );
    return rows;
  }

  private async lastAnswer(messageId: string): Promise<LoggedError | undefined> {
    const { rows } = await this.database.query<LoggedError>(
      `select id as "messageId", ${ms('finished_at')} as "timeMs", failure_error as error, failure_status as status,
          coalesce(failure_headers, '{}') as headers, coalesce(failure_body, '') as body
        from ${this.table('messages')} where id = $1 and failure_status is not null`,
      [messageId],
      'queue_run_last_answer',
    );
    return rows[0];
  }
}
