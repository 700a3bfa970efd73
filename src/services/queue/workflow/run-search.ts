import type { Queryable } from '../../../lib/postgres/postgres.js';
import type { Conditions } from '../store/conditions.js';
import { tableOf } from '../store/statements.js';
import { searchInSteps } from '../store/step-search.js';
import type { RunState } from './run.js';

/** Runs that one statement looks at, at most. */
const STEP = 20_000;

/** Where a page begins: behind this run, in the order of their start, the newest first. */
export interface RunCursor {
  /** Unix time in ms of the run's start, as text. */
  readonly createdMs: string;
  readonly no: string;
}

/** What is looked for. What has an index leads to the runs; the others are looked through run by run. */
export interface RunQuery {
  readonly ids?: readonly string[] | undefined;
  /** An id, `@` and the time of the start in ms. */
  readonly idsAndTimes?: readonly string[] | undefined;
  readonly messageIds?: readonly string[] | undefined;
  readonly urls?: readonly string[] | undefined;
  readonly states?: readonly RunState[] | undefined;
  /** Unix times in ms of the start, both inclusive. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  /** On the run `r`, with parameters behind the `PARAMETERS_BEFORE` of a search. */
  readonly conditions: Conditions;
}

/** Parameters that a search has before those of its conditions. */
export const PARAMETERS_BEFORE = 7;

export interface FoundRuns {
  readonly runs: readonly RunCursor[];
  /** Behind which the search goes on; `undefined`: there is nothing more. */
  readonly next: RunCursor | undefined;
}

/** `fits` is null for the last of a whole step. */
type StepRow = RunCursor & { fits: boolean | null };

/** Finds runs by the time of their start, the newest first, in steps of a bounded number. */
export class RunSearch {
  private readonly runs: string;
  private readonly messages: string;

  constructor(
    private readonly database: Queryable,
    schema: string,
  ) {
    this.runs = tableOf(schema, 'workflow_runs');
    this.messages = tableOf(schema, 'messages');
  }

  /** @param after the run behind which the search begins */
  async find(query: RunQuery, count: number, after?: RunCursor): Promise<FoundRuns> {
    const { found, next } = await searchInSteps(STEP, { count, after }, (last, rest, most) =>
      this.step(query, last, rest, most),
    );
    return { runs: found, next };
  }

  /** Those of these ids that are under way, at most one of each. */
  async findOpen(ids: readonly string[]): Promise<FoundRuns> {
    const { rows } = await this.database.query<RunCursor>(
      `select r.created_ms::text as "createdMs", r.no::text as no from ${this.runs} r
        where r.id = any($1::text[]) and r.ended_at is null order by r.no desc`,
      [ids],
    );
    return { runs: rows, next: undefined };
  }

  /**
   * Of the next runs those that fit, one more than wanted where there are; `bound`: the last run of a step behind which
   * there may be more.
   */
  private async step(
    query: RunQuery,
    after: RunCursor | undefined,
    count: number,
    most: number,
  ): Promise<{ found: RunCursor[]; bound: RunCursor | undefined }> {
    const { from, to, conditions } = query;
    const { sql, values } = this.way(query);
    const { rows } = await this.database.query<StepRow>(
      `with step as materialized (
          select r.no, r.created_ms, (${conditions.sql}) as fits,
            row_number() over (order by r.created_ms desc, r.no desc) as row
          from (
            select r.no, r.id, r.created_ms, r.url, r.state, r.labels, r.flow_key, r.caller_ip from ${this.runs} r
            where ${sql} and ($1::bigint is null or (r.created_ms, r.no) < ($1::bigint, $2::bigint))
              and ($3::bigint is null or r.created_ms >= $3::bigint) and ($4::bigint is null or r.created_ms <= $4::bigint)
            order by r.created_ms desc, r.no desc limit $6
          ) r
        )
        (select created_ms::text as "createdMs", no::text as no, fits from step where fits order by row limit $5::int + 1)
        union all (select created_ms::text, no::text, null from step order by row offset $6::int - 1 limit 1)`,
      [
        ...[after?.createdMs ?? null, after?.no ?? null, from ?? null, to ?? null, count, most, values],
        ...conditions.values,
      ],
    );
    return { found: rows.filter(({ fits }) => fits), bound: rows.find(({ fits }) => fits === null) };
  }

  /** The index that leads to the fewest runs. `values` is $7, which every condition names so that its type is known. */
  private way(query: RunQuery): { sql: string; values: readonly string[] | null } {
    const { ids, idsAndTimes, messageIds, urls, states } = query;
    if (idsAndTimes !== undefined)
      return {
        sql: `(r.id, r.created_ms) in (
          select substring(pair from '^(.*)@'), substring(pair from '@([0-9]+)$')::bigint from unnest($7::text[]) pair)`,
        values: idsAndTimes,
      };
    if (ids !== undefined) return { sql: 'r.id = any($7::text[])', values: ids };
    if (messageIds !== undefined)
      return {
        sql: `r.no in (select m.run_no from ${this.messages} m where m.id = any($7::text[]))`,
        values: messageIds,
      };
    const none = (sql: string) => ({ sql: `${sql} and $7::text[] is null`, values: null });
    if (states?.every((state) => state === 'RUN_STARTED') === true) return none('r.ended_at is null');
    if (urls?.length === 1) return { sql: 'r.url = ($7::text[])[1]', values: urls };
    if (states?.every((state) => state === 'RUN_FAILED' || state === 'RUN_CANCELED') === true)
      return none(`r.state in ('RUN_FAILED', 'RUN_CANCELED')`);
    return none('true');
  }
}
