import type { Database } from '../../../lib/postgres/postgres.js';
import { tableOf } from '../store/statements.js';
import { StepSize } from '../store/step-size.js';

/** Runs that are looked at in one sweep. */
const STEP = 5_000;
/** From the end of one count to the beginning of the next, in ms. */
const EVERY_MS = 60_000;

/** Runs under way in all gateways. */
export interface OpenRuns {
  readonly count: number;
  /** Those for which nothing is under way: their endpoint answered 2xx and asked for nothing, and nobody will call it again. */
  readonly stuck: number;
}

interface Walk extends OpenRuns {
  readonly createdMs: string | null;
  readonly no: string | null;
}

const BEGINNING: Walk = { count: 0, stuck: 0, createdMs: null, no: null };

/** Counts the runs that are under way, some at each sweep: what a scrape shows is a number that is there. */
export class OpenRunCounter {
  private walk = BEGINNING;
  private size = new StepSize(STEP);
  private nextAt = 0;
  /** Of the newest count that is complete. */
  open: OpenRuns | undefined;

  private readonly sql: string;

  constructor(
    private readonly database: Database,
    schema: string,
  ) {
    const table = (name: string) => tableOf(schema, name);
    this.sql = `with step as materialized (
        select no, created_ms from ${table('workflow_runs')}
        where ended_at is null and ($1::bigint is null or (created_ms, no) > ($1::bigint, $2::bigint))
        order by created_ms, no limit $3
      ), looked as (
        select not exists (select from ${table('messages')} m where m.run_no = step.no and m.finished_at is null)
          and not exists (select from ${table('workflow_waits')} w where w.run_no = step.no)
          and not exists (
            select from ${table('workflow_steps')} s
              join ${table('workflow_runs')} child on child.id = s.meta ->> 'runId'
                and child.created_ms = (s.meta ->> 'createdMs')::bigint and child.ended_at is null
            where s.run_no = step.no and s.kind = 'invoke') as stuck
        from step
      )
      select count(*)::int as count, count(*) filter (where stuck)::int as stuck,
        (select created_ms::text from step order by created_ms desc, no desc limit 1) as "createdMs",
        (select no::text from step order by created_ms desc, no desc limit 1) as no
      from looked`;
  }

  /** Goes on with the count. */
  async step(): Promise<void> {
    if (performance.now() < this.nextAt) return;
    const { createdMs, no, count, stuck } = this.walk;
    const { found, most } = await this.size.run(async (most) => {
      const { rows } = await this.database.query<Walk>(this.sql, [createdMs, no, most], 'queue_runs_count');
      return { found: rows[0] ?? BEGINNING, most };
    });
    const walk = { ...found, count: count + found.count, stuck: stuck + found.stuck };
    if (found.count === most) {
      this.walk = walk;
      return;
    }
    this.open = { count: walk.count, stuck: walk.stuck };
    this.walk = BEGINNING;
    this.nextAt = performance.now() + EVERY_MS;
  }
}
