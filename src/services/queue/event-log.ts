import type { Database } from '../../lib/postgres.js';
import { quoteIdentifier } from '../../lib/postgres.js';
import type { Conditions } from './filters.js';
import type { Message } from './message.js';
import { MESSAGE_COLUMNS, type MessageRow, messageOf } from './message-row.js';
import { tableOf } from './statements.js';

export interface LogEntry {
  /** Unix time in microseconds, as text. */
  readonly at: string;
  readonly seq: string;
  readonly state: string;
  /** Unix time in ms. */
  readonly nextDeliveryTime: number | null;
  readonly error: string | null;
  readonly status: number | null;
  readonly headers: Readonly<Record<string, readonly string[]>> | null;
  readonly body: Buffer | null;
  readonly message: Message;
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
  found: number;
};

/** Bodies of one page together, in bytes; a single entry may have more. */
const PAGE_BYTES = 16 * 1024 * 1024;
const DAY_MS = 86_400_000;
/** Days for which partitions are made ahead. */
const AHEAD = 2;

export interface LogPage {
  readonly count: number;
  readonly oldestFirst: boolean;
  readonly after: { readonly at: string; readonly seq: string } | undefined;
}

/** What happened to messages. Entries are written by the statements that make it happen. */
export class EventLog {
  private readonly events: string;
  private readonly messages: string;
  private keptFor: string | undefined;

  constructor(
    private readonly database: Database,
    private readonly schema: string,
    private readonly retentionMs: number,
  ) {
    this.events = tableOf(schema, 'events');
    this.messages = tableOf(schema, 'messages');
  }

  /** @param conditions on `e` and `m` with parameters from $5 on */
  async list({ sql, values }: Conditions, page: LogPage): Promise<{ entries: LogEntry[]; hasMore: boolean }> {
    const order = page.oldestFirst ? 'asc' : 'desc';
    const behind = page.oldestFirst ? '>' : '<';
    const place = `(extract(epoch from e.at) * 1000000)::bigint`;
    const size = 'octet_length(body) + coalesce(octet_length(response_body), 0)';
    const statement = `with page as (
        select ${place}::text as at, e.seq::text as seq, e.state, (extract(epoch from e.next_at) * 1000)::float8 as next_ms, e.error,
          e.response_status, e.response_headers, e.response_body, ${MESSAGE_COLUMNS},
          row_number() over (order by e.at ${order}, e.seq ${order}) as row
        from ${this.events} e join ${this.messages} m on m.id = e.message_id
        where e.at >= now() - $2::float8 * interval '1 millisecond'
          and ($3::text is null
            or (e.at, e.seq) ${behind} (timestamptz 'epoch' + $3::bigint * interval '1 microsecond', $4::bigint))
          and (${sql})
        order by e.at ${order}, e.seq ${order} limit $1 + 1
      ), sized as (
        select *, sum(${size}) over (order by row) - (${size}) as bytes_before, (count(*) over ())::int as found from page
      )
      select * from sized where row <= $1 and bytes_before <= ${PAGE_BYTES} order by row`;
    const { count, after } = page;
    const parameters = [count, this.retentionMs, after?.at ?? null, after?.seq ?? null, ...values];
    const { rows } = await this.database.query<Row>(statement, parameters);
    return { entries: rows.map(entryOf), hasMore: (rows[0]?.found ?? 0) > rows.length };
  }

  /** Makes the partitions of the coming days and drops those that are over. Several gateways may do it at once. */
  async keepPartitions(now: number): Promise<void> {
    const today = dayOf(now);
    if (this.keptFor === today) return;
    for (let day = 0; day <= AHEAD; day++) {
      const from = dayOf(now + day * DAY_MS);
      const to = dayOf(now + (day + 1) * DAY_MS);
      const name = `events_${from.replaceAll('-', '')}`;
      await this.database.query(
        `create table if not exists ${tableOf(this.schema, name)} partition of ${this.events}
          for values from ('${from} 00:00:00+00') to ('${to} 00:00:00+00')`,
      );
    }
    const { rows } = await this.database.query<{ name: string }>(
      `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = '${this.events}'::regclass`,
    );
    const oldest = `events_${dayOf(now - this.retentionMs - DAY_MS).replaceAll('-', '')}`;
    for (const { name } of rows) {
      if (/^events_\d{8}$/.test(name) && name < oldest)
        await this.database.query(
          `drop table if exists ${quoteIdentifier(this.schema)}.${quoteIdentifier(name)}`,
        );
    }
    await this.database.query(`delete from ${tableOf(this.schema, 'events_other')} where at < $1`, [
      new Date(now - this.retentionMs),
    ]);
    this.keptFor = today;
  }
}

/** `2026-01-31`, in UTC. */
function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
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
