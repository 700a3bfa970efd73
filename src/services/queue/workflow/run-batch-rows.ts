import type { Queryable } from '../../../lib/postgres/postgres.js';
import type { NewMessage } from '../message/message.js';
import { newMessageRecord } from '../store/message-row.js';
import { joined } from '../store/pieces.js';
import { tableOf } from '../store/statements.js';
import type { KnownRun, NewStep, Run } from './run.js';
import type { RunCounter } from './run-metrics.js';
import { RUN_COLUMNS, type RunRow, runOf, type ToldStep } from './run-rows.js';
import { runStatements, UNDER_WAY } from './run-statements.js';

/** A run that is to be made, with its payload and its first message. */
export interface Start {
  readonly run: Omit<KnownRun, 'no'>;
  readonly payload: Buffer;
  readonly message: NewMessage;
}

/** A step that is to be appended to a run, and the message that follows, whose place is found with it. */
export interface Append {
  readonly run: KnownRun;
  readonly step: NewStep;
  readonly message: NewMessage;
}

export interface End {
  readonly runId: string;
  readonly result: Buffer;
}

export interface BatchLimits {
  /** How long after its due time a message without a claim counts as lost, in ms. */
  readonly graceMs: number;
  readonly maxSteps: number;
  readonly maxRunBytes: number;
  readonly lazyBytes: number;
}

/** Changes of many runs, one statement each. Of one run there is one in a statement at most. */
export class RunBatchRows {
  private readonly sql: ReturnType<typeof runStatements>;
  private readonly runs: string;
  private readonly steps: string;

  constructor(
    schema: string,
    private readonly counter: RunCounter,
    private readonly limits: BatchLimits,
  ) {
    this.sql = runStatements(schema);
    this.runs = tableOf(schema, 'workflow_runs');
    this.steps = tableOf(schema, 'workflow_steps');
  }

  /** Runs under way by their ids, as they are without a lock. */
  async readOpen(connection: Queryable, ids: readonly string[]): Promise<Run[]> {
    const { rows } = await connection.query<RunRow>(
      `select ${RUN_COLUMNS} from unnest($1::text[]) as wanted (id)
        cross join lateral (select * from ${this.runs} where id = wanted.id and ${UNDER_WAY}) r`,
      [ids],
      'queue_run_read_open',
    );
    return rows.map(runOf);
  }

  /** Makes runs. @returns the numbers of those that were made, by their ids: of the others one is under way, or was just now */
  async startAll(connection: Queryable, starts: readonly Start[]): Promise<Map<string, string>> {
    const at = places(starts.map(({ payload }) => payload));
    const records = starts.map(({ run, message }, i) => ({
      ...newMessageRecord(message, 1),
      ...{ run_no: undefined, run_id: run.id, created_ms: run.createdMs, labels: run.labels },
      ...{ flow_key: run.settings.delivery.flow?.key, settings: run.settings, awaits_sdk: run.awaitsSdk },
      ...at[i],
    }));
    const bodies = joined(starts.map(({ payload }) => payload));
    const values = [JSON.stringify(records), bodies, this.limits.graceMs];
    const { rows } = await connection.query<{ no: string; run_id: string }>(
      this.sql.start,
      values,
      'queue_run_start_all',
    );
    for (const _ of rows) {
      this.counter.run('RUN_STARTED');
      this.counter.step('init');
    }
    return new Map(rows.map(({ no, run_id: id }) => [id, no]));
  }

  /**
   * Appends steps, each with its message.
   * @returns the ids of the messages that were stored: of the others the step is there already, or its run has no room for it,
   * has ended, or has settings that are not known yet
   */
  async appendAll(connection: Queryable, appends: readonly Append[]): Promise<Set<string>> {
    const at = places(appends.map(({ step }) => step.body));
    const records = appends.map(({ run, step, message }, i) => ({
      ...newMessageRecord(message, 1),
      ...{ kind: step.kind, step_id: step.stepId, target_step: step.targetStep ?? undefined },
      ...{ concurrent: step.concurrent, name: step.name, type: step.type, is_lazy: run.settings.isLazy },
      ...at[i],
    }));
    const { graceMs, maxSteps, maxRunBytes, lazyBytes } = this.limits;
    const bodies = joined(appends.map(({ step }) => step.body));
    const { rows } = await connection.query<{ message_id: string }>(
      this.sql.append,
      [JSON.stringify(records), bodies, graceMs, maxSteps, maxRunBytes, lazyBytes],
      'queue_run_append_all',
    );
    const appended = new Set(rows.map(({ message_id: id }) => id));
    for (const { step } of appends) if (appended.has(step.messageId)) this.counter.step(step.kind);
    return appended;
  }

  /**
   * Ends runs well that nobody has invoked; what they still had to do goes.
   * @returns the ids of those that were ended, and the flow-control keys of what went
   */
  async endAll(
    connection: Queryable,
    ends: readonly End[],
  ): Promise<{ ended: Set<string>; keys: readonly string[] }> {
    const at = places(ends.map(({ result }) => result));
    const records = ends.map(({ runId }, i) => ({ run_id: runId, ...at[i] }));
    const { rows } = await connection.query<{ run_id: string; keys: string[] | null }>(
      this.sql.end,
      [JSON.stringify(records), joined(ends.map(({ result }) => result))],
      'queue_run_end_all',
    );
    for (const _ of rows) this.counter.run('RUN_SUCCESS');
    return { ended: new Set(rows.map(({ run_id: id }) => id)), keys: rows[0]?.keys ?? [] };
  }

  /** The steps that deliveries tell, up to a place each, as the entries of their bodies; in the order of what was asked. */
  async toldSteps(
    connection: Queryable,
    wanted: readonly { readonly no: string; readonly seq: number }[],
  ): Promise<ToldStep[][]> {
    const { rows } = await connection.query<{ at: string; message_id: string; body: Buffer }>(
      `select w.at, s.message_id, s.body
        from unnest($1::bigint[], $2::int[]) with ordinality as w (no, seq, at)
        join ${this.steps} s on s.run_no = w.no and s.seq <= w.seq and s.kind in ('init', 'result', 'plan')
        order by w.at, s.seq`,
      [wanted.map(({ no }) => no), wanted.map(({ seq }) => seq)],
      'queue_run_told_all',
    );
    const told: ToldStep[][] = wanted.map(() => []);
    for (const { at, message_id: messageId, body } of rows) told[Number(at) - 1]?.push({ messageId, body });
    return told;
  }
}

/** Where bodies lie that are written one behind the other; SQL counts from 1. */
function places(bodies: readonly Buffer[]): { step_at: number; step_size: number }[] {
  let at = 1;
  return bodies.map(({ length }) => {
    at += length;
    return { step_at: at - length, step_size: length };
  });
}
