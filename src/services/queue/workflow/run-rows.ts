import type { Queryable } from '../../../lib/postgres/postgres.js';
import { responseOf } from '../message/callbacks.js';
import { type Conclusion, firstHeaders } from '../message/conclusion.js';
import type { ClaimedMessage } from '../message/message.js';
import { inPieces } from '../store/pieces.js';
import { tableOf } from '../store/statements.js';
import type { Invoker, NewStep, Run, RunFailure, RunSettings, RunState, StepKind } from './run.js';
import type { RunCounter } from './run-metrics.js';

export interface RunRow {
  no: string;
  id: string;
  created_ms: string;
  url: string;
  state: RunState;
  labels: string[];
  caller_ip: string | null;
  settings: RunSettings;
  awaits_sdk: boolean;
  invoker: Invoker | null;
  next_seq: number;
  steps_bytes: string;
  failure: RunFailure | null;
  is_over: boolean;
}

/** The columns of a `RunRow`, of the table named `r`. */
export const RUN_COLUMNS = `r.no, r.id, r.created_ms, r.url, r.state, r.labels, r.caller_ip, r.settings, r.awaits_sdk,
  r.invoker, r.next_seq, r.steps_bytes, r.failure, r.ended_at is not null as is_over`;

export function runOf(row: RunRow): Run {
  return {
    no: row.no,
    id: row.id,
    createdMs: Number(row.created_ms),
    url: row.url,
    state: row.state,
    labels: row.labels,
    callerIp: row.caller_ip,
    settings: row.settings,
    awaitsSdk: row.awaits_sdk,
    invoker: row.invoker,
    nextSeq: row.next_seq,
    stepsBytes: Number(row.steps_bytes),
    failure: row.failure,
    isOver: row.is_over,
  };
}

/** A run that is to be made. */
export interface NewRun extends Pick<Run, 'id' | 'createdMs' | 'url' | 'labels' | 'settings' | 'awaitsSdk'> {
  readonly callerIp: string | null;
  readonly invoker: Invoker | null;
}

/** How a run ends. */
export interface RunEnd {
  readonly state: Exclude<RunState, 'RUN_STARTED'>;
  readonly result?: Buffer | undefined;
  readonly failure?: RunFailure | undefined;
}

/** A step as the entry of a body that tells it. */
export interface ToldStep {
  readonly messageId: string;
  readonly body: Buffer;
}

/** Bodies of steps that are read at once, in bytes, and what a step has beside its body. */
const [PIECE_BYTES, STEP_BYTES] = [1024 * 1024, 500] as const;

/**
 * The rows of runs and their steps. Whoever changes anything of a run has its row locked first, which orders all that
 * happens to it; who needs several locks those that began last first (a child is always younger than its parent).
 */
export class RunRows {
  private readonly runs: string;
  private readonly steps: string;
  private readonly waits: string;
  private readonly notes: string;
  private readonly messages: string;
  private readonly events: string;
  private readonly running: string;
  private readonly letters: string;

  constructor(
    schema: string,
    private readonly counter: RunCounter,
  ) {
    const table = (name: string) => tableOf(schema, name);
    this.runs = table('workflow_runs');
    this.steps = table('workflow_steps');
    this.waits = table('workflow_waits');
    this.notes = table('workflow_notes');
    this.messages = table('messages');
    this.events = table('events');
    this.running = table('flow_running');
    this.letters = table('dead_letters');
  }

  /** Locks the runs of these ids that are under way. */
  async lockOpen(connection: Queryable, ids: readonly string[]): Promise<Map<string, Run>> {
    const { rows } = await connection.query<RunRow>(
      `select ${RUN_COLUMNS} from ${this.runs} r where id = any($1::text[]) and ended_at is null order by no desc for update`,
      [ids],
      'queue_run_lock_open',
    );
    return new Map(rows.map((row) => [row.id, runOf(row)]));
  }

  /** Locks runs by their numbers, over or not. */
  async lockAll(connection: Queryable, nos: readonly string[]): Promise<Map<string, Run>> {
    const { rows } = await connection.query<RunRow>(
      `select ${RUN_COLUMNS} from ${this.runs} r where no = any($1::bigint[]) order by no desc for update`,
      [nos],
      'queue_run_lock_all',
    );
    return new Map(rows.map((row) => [row.no, runOf(row)]));
  }

  /** Locks a run, over or not; `undefined`: it is gone. */
  async lock(connection: Queryable, no: string): Promise<Run | undefined> {
    const { rows } = await connection.query<RunRow>(
      `select ${RUN_COLUMNS} from ${this.runs} r where no = $1::bigint for update`,
      [no],
      'queue_run_lock',
    );
    return rows[0] && runOf(rows[0]);
  }

  async readAll(connection: Queryable, nos: readonly string[]): Promise<Map<string, Run>> {
    const { rows } = await connection.query<RunRow>(
      `select ${RUN_COLUMNS} from ${this.runs} r where no = any($1::bigint[])`,
      [nos],
      'queue_run_read_all',
    );
    return new Map(rows.map((row) => [row.no, runOf(row)]));
  }

  async read(connection: Queryable, no: string): Promise<Run | undefined> {
    const { rows } = await connection.query<RunRow>(
      `select ${RUN_COLUMNS} from ${this.runs} r where no = $1::bigint`,
      [no],
      'queue_run_read',
    );
    return rows[0] && runOf(rows[0]);
  }

  /** The run of this id that began last. */
  async newest(connection: Queryable, id: string): Promise<Run | undefined> {
    const { rows } = await connection.query<RunRow>(
      `select ${RUN_COLUMNS} from ${this.runs} r where id = $1 order by created_ms desc limit 1`,
      [id],
      'queue_run_newest',
    );
    return rows[0] && runOf(rows[0]);
  }

  /** Makes a run; `undefined`: one of that id is under way. Waits for others that are about to make the same. */
  async create(connection: Queryable, run: NewRun): Promise<Run | undefined> {
    const { rows } = await connection.query<RunRow>(
      `insert into ${this.runs} as r (id, created_ms, url, state, labels, flow_key, caller_ip, settings, awaits_sdk, invoker)
        values ($1, greatest($2::bigint, (select max(created_ms) + 1 from ${this.runs} where id = $1)), $3, 'RUN_STARTED',
          $4::text[], $5, $6, $7::json, $8, $9::json)
        on conflict (id) where ended_at is null do nothing returning ${RUN_COLUMNS}`,
      [
        ...[run.id, run.createdMs, run.url, run.labels, run.settings.delivery.flow?.key ?? null],
        ...[run.callerIp, JSON.stringify(run.settings), run.awaitsSdk, jsonOrNull(run.invoker)],
      ],
      'queue_run_create',
    );
    if (rows[0] === undefined) return undefined;
    this.counter.run('RUN_STARTED');
    return runOf(rows[0]);
  }

  /** Appends a step. @returns the run with it; `undefined`: that step is there already */
  async append(connection: Queryable, run: Run, step: NewStep): Promise<Run | undefined> {
    const { rowCount } = await connection.query(
      `with step as (
          insert into ${this.steps} (run_no, seq, message_id, kind, step_id, target_step, concurrent, name, type, body, meta)
          values ($1::bigint, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::json)
          on conflict do nothing returning 1
        )
        update ${this.runs} set next_seq = next_seq + 1, steps_bytes = steps_bytes + $12::bigint
        where no = $1::bigint and exists (select from step)`,
      [
        ...[run.no, run.nextSeq, step.messageId, step.kind, step.stepId, step.targetStep, step.concurrent],
        ...[step.name, step.type, step.body, jsonOrNull(step.meta ?? null), told(step)],
      ],
      'queue_run_append',
    );
    if (rowCount === 0) return undefined;
    this.counter.step(step.kind);
    return { ...run, nextSeq: run.nextSeq + 1, stepsBytes: run.stepsBytes + told(step) };
  }

  /** The message of a step that is there already. */
  async messageOf(
    connection: Queryable,
    { no }: Run,
    { kind, stepId, targetStep }: Pick<NewStep, 'kind' | 'stepId' | 'targetStep'>,
  ): Promise<string | undefined> {
    const { rows } = await connection.query<{ message_id: string }>(
      `select message_id from ${this.steps} where run_no = $1::bigint and kind = $2 and step_id = $3
        and (kind <> 'plan' or target_step = $4)`,
      [no, kind, stepId, targetStep],
      'queue_run_step_message',
    );
    return rows[0]?.message_id;
  }

  /** Starts a run anew with what the SDK told: its first step has another message. */
  async adopt(
    connection: Queryable,
    { no }: Run,
    settings: RunSettings,
    labels: readonly string[],
    messageId: string,
  ) {
    await connection.query(
      `with first as (update ${this.steps} set message_id = $2 where run_no = $1::bigint and seq = 0)
        update ${this.runs} set settings = $3::json, labels = $4::text[], flow_key = $5, awaits_sdk = false
        where no = $1::bigint`,
      [no, messageId, JSON.stringify(settings), labels, settings.delivery.flow?.key ?? null],
    );
  }

  /** Ends a run; its waits and notes go. */
  async end(connection: Queryable, { no }: Run, { state, result, failure }: RunEnd): Promise<void> {
    await connection.query(
      `with waits as (delete from ${this.waits} where run_no = $1::bigint),
        notes as (delete from ${this.notes} where run_no = $1::bigint)
        update ${this.runs} set state = $2, result = $3, failure = $4::json, ended_at = now() where no = $1::bigint`,
      [no, state, result ?? null, jsonOrNull(failure ?? null)],
      'queue_run_end',
    );
    this.counter.run(state);
  }

  async setFailure(connection: Queryable, { no }: Run, failure: RunFailure): Promise<void> {
    await connection.query(`update ${this.runs} set failure = $2::json where no = $1::bigint`, [
      no,
      JSON.stringify(failure),
    ]);
  }

  /**
   * Cancels the messages of runs that are not finished, but for the named one and, where they may go on, those that are
   * being delivered. @returns the flow-control keys under which they stood
   */
  async cancelMessages(
    connection: Queryable,
    runs: readonly Run[],
    { except = null, active = true }: { except?: string | null; active?: boolean } = {},
  ): Promise<string[]> {
    const { rows } = await connection.query<{ flow_key: string | null }>(
      `with chosen as (
          select id from ${this.messages} where run_no = any($1::bigint[]) and finished_at is null
            and id is distinct from $2 and ($3 or state <> 'ACTIVE') and run_role <> 'failure'
          order by id for update
        ), gone as (
          update ${this.messages} m set state = 'CANCELED', finished_at = now(), held = null, lease_until = null
          from chosen where m.id = chosen.id returning m.id, m.flow_key
        ), idle as (
          delete from ${this.running} where message_id in (select id from gone where flow_key is not null)
        ), log as (insert into ${this.events} (message_id, state) select id, 'CANCELED' from gone)
        select distinct flow_key from gone where flow_key is not null`,
      [runs.map(({ no }) => no), except, active],
      'queue_run_cancel_messages',
    );
    return rows.map(({ flow_key: key }) => key as string);
  }

  /**
   * Writes the last outcome of a message from which more follows than from that of others. @returns false when its claim
   * was lost
   */
  async finish(connection: Queryable, conclusion: Conclusion, maxLogged: number): Promise<boolean> {
    const { message, result, decision } = conclusion;
    const { status, headers, body } = responseOf(result);
    const delivered = decision.kind === 'delivered';
    const { rowCount } = await connection.query(
      `with done as (
          update ${this.messages} m set state = $3, lease_until = null, finished_at = now()
          where id = $1 and claims = $2 and finished_at is null and state <> 'FAILING' returning m.id, m.flow_key
        ), idle as (
          delete from ${this.running} where message_id in (select id from done where flow_key is not null)
        ), errors as (
          insert into ${this.events} (message_id, state, error, response_status, response_headers, response_body, at)
          select id, 'ERROR', $4, $5, $6::json, $7, now() from done where $3 <> 'DELIVERED'
        ), log as (
          insert into ${this.events} (message_id, state, at) select id, $3, now() + interval '1 microsecond' from done
        )
        select id from done`,
      [
        ...[message.id, message.claims, delivered ? 'DELIVERED' : 'FAILED'],
        ...[result.kind === 'failure' ? result.reason : null, status],
        ...[JSON.stringify(delivered ? {} : firstHeaders(headers, maxLogged)), body.subarray(0, maxLogged)],
      ],
      'queue_run_finish',
    );
    return rowCount > 0;
  }

  /** A timer has served. @returns false when its claim was lost */
  async finishTimer(connection: Queryable, { id, claims }: ClaimedMessage): Promise<boolean> {
    const { rowCount } = await connection.query(
      `with done as (
          update ${this.messages} set state = 'DELIVERED', lease_until = null, finished_at = now()
          where id = $1 and claims = $2 and finished_at is null returning id
        ), log as (insert into ${this.events} (message_id, state) select id, 'DELIVERED' from done)
        select id from done`,
      [id, claims],
      'queue_run_finish_timer',
    );
    return rowCount > 0;
  }

  /** Marks a dead letter as that of a run. */
  async nameDeadLetter(connection: Queryable, dlqId: string, { no }: Run): Promise<void> {
    await connection.query(`update ${this.letters} set run_no = $2::bigint where id = $1`, [dlqId, no]);
  }

  /** Cancels a message that is about to have a dead letter: its run has ended already. */
  async cancelFailing(connection: Queryable, id: string): Promise<void> {
    await connection.query(
      `with gone as (
          update ${this.messages} set state = 'CANCELED', finished_at = now(), lease_until = null
          where id = $1 and state = 'FAILING' and finished_at is null returning id
        )
        insert into ${this.events} (message_id, state) select id, 'CANCELED' from gone`,
      [id],
    );
  }

  /** The steps that a delivery tells, few at once: all of them may have hundreds of megabytes. */
  async *toldInPieces(connection: Queryable, no: string, upTo: number): AsyncGenerator<ToldStep> {
    const { rows: sizes } = await connection.query<{ seq: number; bytes: number }>(
      `select seq, octet_length(body) as bytes from ${this.steps}
        where run_no = $1::bigint and seq <= $2 and kind in ('init', 'result', 'plan') order by seq`,
      [no, upTo],
      'queue_run_told_sizes',
    );
    for (const piece of inPieces(sizes, ({ bytes }) => STEP_BYTES + bytes, PIECE_BYTES)) {
      const { rows } = await connection.query<{ message_id: string; body: Buffer }>(
        `select message_id, body from ${this.steps} where run_no = $1::bigint and seq = any($2::int[]) order by seq`,
        [no, piece.map(({ seq }) => seq)],
        'queue_run_told_piece',
      );
      for (const { message_id: messageId, body } of rows) yield { messageId, body };
    }
  }

  async step(
    connection: Queryable,
    no: string,
    seq: number,
  ): Promise<{ kind: StepKind; body: Buffer; meta: unknown; stepId: number } | undefined> {
    const { rows } = await connection.query<{ kind: StepKind; body: Buffer; meta: unknown; step_id: number }>(
      `select kind, body, meta, step_id from ${this.steps} where run_no = $1::bigint and seq = $2`,
      [no, seq],
      'queue_run_step',
    );
    const [row] = rows;
    return row && { kind: row.kind, body: row.body, meta: row.meta, stepId: row.step_id };
  }
}

const jsonOrNull = (value: unknown) => (value === null ? null : JSON.stringify(value));

/** Bytes of the step that deliveries tell. */
const told = ({ kind, body }: NewStep) => (['init', 'result', 'plan'].includes(kind) ? body.length : 0);
