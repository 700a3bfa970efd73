import type { Queryable } from '../../../lib/postgres/postgres.js';
import { joined } from '../store/pieces.js';
import { tableOf } from '../store/statements.js';
import { type NewStep, type Run, TOLD_KINDS } from './run.js';
import type { RunCounter } from './run-metrics.js';
import type { NewRun, ToldStep } from './run-rows.js';

/** A step that is to be appended to a run which is locked. */
export interface Append {
  readonly run: Run;
  readonly step: NewStep;
}

/** What `RunRows` does for one run, for many in one statement each. */
export class RunBatchRows {
  private readonly runs: string;
  private readonly steps: string;
  private readonly waits: string;
  private readonly notes: string;

  constructor(
    schema: string,
    private readonly counter: RunCounter,
  ) {
    this.runs = tableOf(schema, 'workflow_runs');
    this.steps = tableOf(schema, 'workflow_steps');
    this.waits = tableOf(schema, 'workflow_waits');
    this.notes = tableOf(schema, 'workflow_notes');
  }

  /**
   * Makes runs of different ids, in the order of the ids: two gateways that start the same ones do not wait for each
   * other in a circle.
   * @returns those that were made, by their ids; of the others one is under way
   */
  async createAll(connection: Queryable, runs: readonly NewRun[]): Promise<Map<string, Run>> {
    const records = runs.map((run) => ({
      ...{ id: run.id, created_ms: run.createdMs, url: run.url, labels: run.labels },
      ...{ flow_key: run.settings.delivery.flow?.key, caller_ip: run.callerIp, settings: run.settings },
      awaits_sdk: run.awaitsSdk,
    }));
    const { rows } = await connection.query<{ no: string; id: string; created_ms: string }>(
      `with n as (
          select * from json_to_recordset($1::json) as r (id text, created_ms bigint, url text, labels json, flow_key text,
            caller_ip text, settings json, awaits_sdk boolean)
        )
        insert into ${this.runs} as r (id, created_ms, url, state, labels, flow_key, caller_ip, settings, awaits_sdk)
        select n.id, greatest(n.created_ms, (select max(created_ms) + 1 from ${this.runs} where id = n.id)), n.url,
          'RUN_STARTED', array(select json_array_elements_text(n.labels)), n.flow_key, n.caller_ip, n.settings, n.awaits_sdk
        from n order by n.id
        on conflict (id) where ended_at is null do nothing returning r.no, r.id, r.created_ms`,
      [JSON.stringify(records)],
      'queue_run_create_all',
    );
    for (const _ of rows) this.counter.run('RUN_STARTED');
    const made = new Map(rows.map((row) => [row.id, row]));
    return new Map(
      runs.flatMap((run) => {
        const row = made.get(run.id);
        return row === undefined ? [] : [[run.id, freshRun(run, row.no, Number(row.created_ms))] as const];
      }),
    );
  }

  /** Appends a step to each of different runs. @returns the numbers of the runs whose step was not there already */
  async appendAll(connection: Queryable, appends: readonly Append[]): Promise<Set<string>> {
    // SQL counts from 1
    let bodyAt = 1;
    const records = appends.map(({ run, step }) => {
      const at = bodyAt;
      bodyAt += step.body.length;
      return {
        ...{
          no: run.no,
          seq: run.nextSeq,
          message_id: step.messageId,
          kind: step.kind,
          step_id: step.stepId,
        },
        ...{ target_step: step.targetStep ?? undefined, concurrent: step.concurrent, name: step.name },
        ...{ type: step.type, meta: step.meta ?? undefined, body_at: at, body_size: step.body.length },
        told: TOLD_KINDS.includes(step.kind) ? step.body.length : 0,
      };
    });
    const { rows } = await connection.query<{ run_no: string }>(
      `with n as (
          select * from json_to_recordset($1::json) as r (no bigint, seq int, message_id text, kind text, step_id int,
            target_step int, concurrent int, name text, type text, meta json, body_at int, body_size int, told bigint)
        ), step as (
          insert into ${this.steps} (run_no, seq, message_id, kind, step_id, target_step, concurrent, name, type, body, meta)
          select n.no, n.seq, n.message_id, n.kind, n.step_id, n.target_step, n.concurrent, n.name, n.type,
            substring($2::bytea from n.body_at for n.body_size), n.meta from n
          on conflict do nothing returning run_no
        ), later as (
          update ${this.runs} r set next_seq = r.next_seq + 1, steps_bytes = r.steps_bytes + n.told
          from n where r.no = n.no and n.no in (select run_no from step)
        )
        select run_no from step`,
      [JSON.stringify(records), joined(appends.map(({ step }) => step.body))],
      'queue_run_append_all',
    );
    const appended = new Set(rows.map(({ run_no: no }) => no));
    for (const { run, step } of appends) if (appended.has(run.no)) this.counter.step(step.kind);
    return appended;
  }

  /** The steps that deliveries tell, up to a place each, as the entries of their bodies; in the order of what was asked. */
  async toldSteps(
    connection: Queryable,
    places: readonly { readonly no: string; readonly seq: number }[],
  ): Promise<ToldStep[][]> {
    const { rows } = await connection.query<{ at: string; message_id: string; body: Buffer }>(
      `select w.at, s.message_id, s.body
        from unnest($1::bigint[], $2::int[]) with ordinality as w (no, seq, at)
        join ${this.steps} s on s.run_no = w.no and s.seq <= w.seq and s.kind in ('init', 'result', 'plan')
        order by w.at, s.seq`,
      [places.map(({ no }) => no), places.map(({ seq }) => seq)],
      'queue_run_told_all',
    );
    const told: ToldStep[][] = places.map(() => []);
    for (const { at, message_id: messageId, body } of rows) told[Number(at) - 1]?.push({ messageId, body });
    return told;
  }

  /** Ends runs well; their waits and notes go. */
  async endAll(
    connection: Queryable,
    ends: readonly { readonly run: Run; readonly result: Buffer }[],
  ): Promise<void> {
    let bodyAt = 1;
    const records = ends.map(({ run, result }) => {
      const at = bodyAt;
      bodyAt += result.length;
      return { no: run.no, body_at: at, body_size: result.length };
    });
    await connection.query(
      `with n as (
          select * from json_to_recordset($1::json) as r (no bigint, body_at int, body_size int)
        ), waits as (delete from ${this.waits} where run_no in (select no from n)),
        notes as (delete from ${this.notes} where run_no in (select no from n))
        update ${this.runs} r set state = 'RUN_SUCCESS', ended_at = now(),
          result = substring($2::bytea from n.body_at for n.body_size)
        from n where r.no = n.no`,
      [JSON.stringify(records), joined(ends.map(({ result }) => result))],
      'queue_run_end_all',
    );
    for (const _ of ends) this.counter.run('RUN_SUCCESS');
  }
}

/** A run that was made just now. */
function freshRun(run: NewRun, no: string, createdMs: number): Run {
  return {
    ...{ no, id: run.id, createdMs, url: run.url, state: 'RUN_STARTED', labels: run.labels },
    ...{ callerIp: run.callerIp, settings: run.settings, awaitsSdk: run.awaitsSdk, invoker: run.invoker },
    ...{ nextSeq: 0, stepsBytes: 0, failure: null, isOver: false },
  };
}
