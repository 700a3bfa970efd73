import type { Queryable } from '../../../lib/postgres/postgres.js';
import type { Conditions } from './conditions.js';
import { tableOf } from './statements.js';
import { searchInSteps } from './step-search.js';

/** Letters that one statement looks at, at most. */
const STEP = 5_000;
/** Ids in one request, and more. */
const MOST_NAMED = 20_000;

/** Where a page begins: behind this entry. */
export interface DeadLetterCursor {
  /** Unix time in microseconds, as text: with the id the place in the order. */
  readonly place: string;
  readonly dlqId: string;
}

/** A letter that fits. */
export interface FoundLetter extends DeadLetterCursor {
  /** Of the bodies, the message's and the response's, in bytes. */
  readonly size: number;
}

/** What is looked for. Letters and messages that are named have an index; others are looked for letter by letter. */
export interface DeadLetterQuery {
  readonly ids?: readonly string[] | undefined;
  readonly messageIds?: readonly string[] | undefined;
  /** Unix times in ms, both inclusive. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  /** On the message `m`, with parameters behind the `PARAMETERS_BEFORE` of a search. */
  readonly conditions?: Conditions;
}

/** Parameters that a search has before those of its conditions. */
export const PARAMETERS_BEFORE = 7;

export interface DeadLetterPage {
  readonly count: number;
  readonly latestFirst: boolean;
  readonly after: DeadLetterCursor | undefined;
}

export interface FoundLetters {
  readonly letters: readonly FoundLetter[];
  /** Behind which the search goes on; `undefined`: there is nothing more. */
  readonly next: DeadLetterCursor | undefined;
}

/** `fits` is null for the last of a whole step. */
type StepRow = FoundLetter & { fits: boolean | null };

/** Finds dead letters in the order of their time, in steps of a bounded number. */
export class DeadLetterSearch {
  private readonly letters: string;
  private readonly messages: string;

  constructor(
    private readonly database: Queryable,
    schema: string,
  ) {
    this.letters = tableOf(schema, 'dead_letters');
    this.messages = tableOf(schema, 'messages');
  }

  async find(query: DeadLetterQuery, page: DeadLetterPage): Promise<FoundLetters> {
    const { found, next } = await searchInSteps(STEP, page, (after, count, most) =>
      this.step(query, { ...page, after, count }, most),
    );
    return { letters: found, next };
  }

  /**
   * Of the next letters those that fit, one more than wanted where there are; `bound`: the last letter of a step behind
   * which there may be more.
   */
  private async step(
    query: DeadLetterQuery,
    page: DeadLetterPage,
    most: number,
  ): Promise<{ found: FoundLetter[]; bound: DeadLetterCursor | undefined }> {
    const { ids, messageIds, from, to } = query;
    const { sql, values } = query.conditions ?? { sql: 'true', values: [] };
    const order = page.latestFirst ? 'desc' : 'asc';
    const isNamed = ids !== undefined || messageIds !== undefined;
    const all = sql === 'true';
    const size = isNamed ? MOST_NAMED : all ? Math.min(most, page.count + 1) : most;
    const named = ids === undefined ? 'd.message_id = any($7::text[])' : 'd.id = any($7::text[])';
    const { rows } = await this.database.query<StepRow>(
      `with step as materialized (
          select d.place, d."dlqId", octet_length(m.body) + coalesce(octet_length(m.failure_body), 0) as size,
            (${sql}) as fits, row_number() over (order by d.created_at ${order}, d."dlqId" ${order}) as row
          from (
            select d.id as "dlqId", d.message_id, d.created_at, ${PLACE}::text as place from ${this.letters} d
            where ${spanOf(page)} and ($7::text[] is null or ${named})
            order by d.created_at ${order}, d.id ${order} limit $6
          ) d join ${this.messages} m on m.id = d.message_id
        )
        (select place, "dlqId", size, fits from step where fits order by row limit $5 + 1)
        union all (select place, "dlqId", size, null from step order by row offset $6 - 1 limit 1)`,
      [
        ...[page.after?.place ?? null, page.after?.dlqId ?? null, from ?? null, to ?? null],
        ...[page.count, size, ids ?? messageIds ?? null],
        ...values,
      ],
    );
    return { found: rows.filter(({ fits }) => fits), bound: rows.find(({ fits }) => fits === null) };
  }
}

const PLACE = `(extract(epoch from d.created_at) * 1000000)::bigint`;

const timeOf = (parameter: string, unit = 'microsecond') =>
  `timestamptz 'epoch' + ${parameter} * interval '1 ${unit}'`;

/** $1 and $2 the place behind which, $3 and $4 times. */
function spanOf({ latestFirst }: DeadLetterPage): string {
  return `($1::text is null or (d.created_at, d.id) ${latestFirst ? '<' : '>'} (${timeOf('$1::bigint')}, $2::text))
    and ($3::float8 is null or d.created_at >= ${timeOf('$3::float8', 'millisecond')})
    and ($4::float8 is null or d.created_at < ${timeOf('($4::float8 + 1)', 'millisecond')})`;
}
