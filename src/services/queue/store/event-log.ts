import type { Queryable } from '../../../lib/postgres/postgres.js';
import type { Message } from '../message/message.js';
import type { Conditions } from './conditions.js';
import { MESSAGE_COLUMNS, type MessageRow, messageOf } from './message-row.js';
import { tableOf } from './statements.js';
import { SEARCH_MS } from './step-search.js';
import { StepSize } from './step-size.js';

export interface LogEntry extends LogPlace {
  readonly state: string;
  /** Unix time in ms. */
  readonly nextDeliveryTime: number | null;
  readonly error: string | null;
  readonly status: number | null;
  readonly headers: Readonly<Record<string, readonly string[]>> | null;
  readonly body: Buffer | null;
  readonly message: Message;
}

/** A place in the order of the log. */
export interface LogPlace {
  /** Unix time in microseconds, as text. */
  readonly at: string;
  readonly seq: string;
}

export interface LogQuery {
  readonly count: number;
  readonly oldestFirst: boolean;
  readonly after: LogPlace | undefined;
  /** Unix times in ms, both inclusive. */
  readonly from: number | undefined;
  readonly to: number | undefined;
  /** Whether the filters name messages, whose entries have an index; others are looked for entry by entry. */
  readonly byMessage: boolean;
}

export interface LogPage {
  readonly entries: readonly LogEntry[];
  /** Where the next page begins: behind this place. `undefined`: there is nothing more. */
  readonly next: LogPlace | undefined;
}

type Row = MessageRow & {
  at: string;
  seq: string;
  state: string;
  next_ms: number | null;
  error: string | null;
  response_status: number | null;
  response_headers: Record<string, string[]> | null;
  response_body: Buffer | null;
  size: number;
  found: number;
};

/** Bodies of one page together, in bytes; a single entry may have more. As hex, bytes, base64 and JSON they take seven times as much. */
const PAGE_BYTES = 4 * 1024 * 1024;
/** A byte of headers and the like costs as many of a body: it is read, shown and written as JSON. */
const JSON_WEIGHT = 16;
/** Entries that one statement looks at, at most: with their messages 80 ms, where it may take 1,300. */
const STEP = 10_000;

/** What happened to messages. Entries are written by the statements that make it happen. */
export class EventLog {
  private readonly events: string;
  private readonly messages: string;

  constructor(
    private readonly database: Queryable,
    schema: string,
    private readonly retentionMs: number,
  ) {
    this.events = tableOf(schema, 'events');
    this.messages = tableOf(schema, 'messages');
  }

  /** @param conditions on `e` and `m` with parameters from $10 on */
  async list(conditions: Conditions, query: LogQuery): Promise<LogPage> {
    const until = performance.now() + SEARCH_MS;
    const entries: LogEntry[] = [];
    let room = PAGE_BYTES;
    const size = new StepSize(STEP);
    for (let { after } = query; ; ) {
      const wanted = query.count - entries.length;
      const place = { ...query, after };
      const { bound, rows } = await size.run(async (step) => {
        const end = query.byMessage ? undefined : await this.stepEnd(step, place);
        return { bound: end, rows: await this.rows(conditions, place, { bound: end, wanted, room }) };
      });
      entries.push(...rows.map(entryOf));
      room -= rows.reduce((sum, row) => sum + row.size, 0);
      const last = entries.at(-1);
      if ((rows[0]?.found ?? 0) > rows.length || (room < 0 && bound !== undefined))
        return { entries, next: last };
      if (bound === undefined) return { entries, next: undefined };
      if (entries.length === query.count || performance.now() > until) return { entries, next: bound };
      after = bound;
    }
  }

  /** The last entry of the next step of so many; `undefined` when fewer are left. */
  private async stepEnd(entries: number, query: LogQuery): Promise<LogPlace | undefined> {
    const order = query.oldestFirst ? 'asc' : 'desc';
    const { rows } = await this.database.query<LogPlace>(
      `select ${PLACE}::text as at, e.seq::text as seq from ${this.events} e where ${spanOf(query)}
        order by e.at ${order}, e.seq ${order} offset $6 limit 1`,
      [this.retentionMs, ...span(query), entries - 1],
    );
    return rows[0];
  }

  private async rows(
    { sql, values }: Conditions,
    query: LogQuery,
    { bound, wanted, room }: { bound: LogPlace | undefined; wanted: number; room: number },
  ): Promise<Row[]> {
    const order = query.oldestFirst ? 'asc' : 'desc';
    const upTo = query.oldestFirst ? '<=' : '>=';
    const json = 'headers, details, callback, failure_callback, response_headers';
    const size = `octet_length(body) + coalesce(octet_length(response_body), 0) + ${JSON_WEIGHT} * octet_length(concat(${json}))`;
    const statement = `with page as (
        select ${PLACE}::text as at, e.seq::text as seq, e.state, (extract(epoch from e.next_at) * 1000)::float8 as next_ms, e.error,
          e.response_status, e.response_headers, e.response_body, ${MESSAGE_COLUMNS},
          row_number() over (order by e.at ${order}, e.seq ${order}) as row
        from ${this.events} e join ${this.messages} m on m.id = e.message_id
        where ${spanOf(query)} and ($6::text is null or (e.at, e.seq) ${upTo} (${timeOf('$6::bigint', 'microsecond')}, $7::bigint))
          and (${sql})
        order by e.at ${order}, e.seq ${order} limit $8 + 1
      ), sized as (
        select *, sum(${size}) over (order by row) - (${size}) as bytes_before, (${size})::float8 as size, (count(*) over ())::int as found from page
      )
      select * from sized where row <= $8 and bytes_before <= $9::bigint order by row`;
    const place = [bound?.at ?? null, bound?.seq ?? null];
    const parameters = [this.retentionMs, ...span(query), ...place, wanted, room, ...values];
    return (await this.database.query<Row>(statement, parameters)).rows;
  }
}

const PLACE = `(extract(epoch from e.at) * 1000000)::bigint`;

const timeOf = (parameter: string, unit: string) =>
  `timestamptz 'epoch' + ${parameter} * interval '1 ${unit}'`;

/** The entries that a query may have at all: $1 retention in ms, $2 and $3 the place behind which, $4 and $5 times. */
function spanOf({ oldestFirst }: LogQuery): string {
  return `e.at >= now() - $1::float8 * interval '1 millisecond'
    and ($2::text is null or (e.at, e.seq) ${oldestFirst ? '>' : '<'} (${timeOf('$2::bigint', 'microsecond')}, $3::bigint))
    and ($4::float8 is null or e.at >= ${timeOf('$4::float8', 'millisecond')})
    and ($5::float8 is null or e.at < ${timeOf('($5::float8 + 1)', 'millisecond')})`;
}

function span({ after, from, to }: LogQuery): unknown[] {
  return [after?.at ?? null, after?.seq ?? null, from ?? null, to ?? null];
}

function entryOf(row: Row): LogEntry {
  return {
    at: row.at,
    seq: row.seq,
    state: row.state,
    nextDeliveryTime: row.next_ms === null ? null : Math.round(row.next_ms),
    error: row.error,
    status: row.response_status,
    headers: row.response_headers,
    body: row.response_body,
    message: messageOf(row),
  };
}
