import type { Queryable } from '../../../lib/postgres/postgres.js';
import { FREED } from '../store/purge.js';
import { tableOf } from '../store/statements.js';
import type { Run, StepKind } from './run.js';

/** A step of a run that failed, as far as it says what is still to do. */
export interface CopiedStep {
  readonly seq: number;
  readonly kind: StepKind;
  readonly stepId: number;
  readonly targetStep: number | null;
  readonly meta: unknown;
  readonly bytes: number;
}

/** What of a run is made again: its start alone, or all that was done. */
export type Copied = 'start' | 'done';

/** The rows of runs that failed. Whoever changes anything has the dead letter locked first, then the run. */
export class DeadRunRows {
  private readonly runs: string;
  private readonly steps: string;
  private readonly messages: string;
  private readonly letters: string;

  constructor(schema: string) {
    this.runs = tableOf(schema, 'workflow_runs');
    this.steps = tableOf(schema, 'workflow_steps');
    this.messages = tableOf(schema, 'messages');
    this.letters = tableOf(schema, 'dead_letters');
  }

  /** Locks the dead letter of a run. @returns the number of the run; `undefined`: there is no such letter */
  async lockLetter(connection: Queryable, dlqId: string): Promise<string | undefined> {
    const { rows } = await connection.query<{ run_no: string }>(
      `select run_no from ${this.letters} where id = $1 and run_no is not null for update`,
      [dlqId],
      'queue_dead_run_lock',
    );
    return rows[0]?.run_no;
  }

  async removeLetter(connection: Queryable, dlqId: string): Promise<void> {
    await connection.query(
      `with gone as (delete from ${this.letters} where id = $1 returning message_id)
        update ${this.messages} m set ${FREED} from gone where m.id = gone.message_id`,
      [dlqId],
      'queue_dead_run_remove',
    );
  }

  /**
   * Copies steps to a new run in their order and places. Of what third parties were asked only what they have answered is
   * copied: the rest is asked again, as are waits and runs that were started.
   */
  async copySteps(connection: Queryable, from: Run, to: Run, what: Copied): Promise<CopiedStep[]> {
    const chosen =
      what === 'start'
        ? 's.seq = 0'
        : `(s.kind in ('init', 'result', 'plan', 'fromCallback') or s.kind = 'toCallback' and exists (
            select from ${this.steps} a where a.run_no = s.run_no and a.step_id = s.step_id and a.kind = 'fromCallback'))`;
    const { rows } = await connection.query<{
      seq: number;
      kind: StepKind;
      step_id: number;
      target_step: number | null;
      meta: unknown;
      bytes: number;
    }>(
      `with copied as (
          insert into ${this.steps} (run_no, seq, message_id, kind, step_id, target_step, concurrent, name, type, body, meta,
            created_at)
          select $2::bigint, s.seq, s.message_id, s.kind, s.step_id, s.target_step, s.concurrent, s.name, s.type, s.body, s.meta,
            s.created_at
          from ${this.steps} s where s.run_no = $1::bigint and ${chosen}
          returning seq, kind, step_id, target_step, meta, octet_length(body) as bytes
        ), later as (
          update ${this.runs} set next_seq = (select max(seq) + 1 from copied),
            steps_bytes = (select coalesce(sum(bytes), 0) from copied where kind in ('init', 'result', 'plan'))
          where no = $2::bigint
        )
        select * from copied order by seq`,
      [from.no, to.no],
    );
    return rows.map((row) => ({
      ...{ seq: row.seq, kind: row.kind, stepId: row.step_id, targetStep: row.target_step },
      ...{ meta: row.meta, bytes: row.bytes },
    }));
  }

  /** The step's message is another one now. */
  async renameMessage(connection: Queryable, { no }: Run, seq: number, messageId: string): Promise<void> {
    await connection.query(
      `update ${this.steps} set message_id = $3 where run_no = $1::bigint and seq = $2`,
      [no, seq, messageId],
      'queue_dead_run_rename',
    );
  }
}
