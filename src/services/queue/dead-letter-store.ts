import type { Database, Queryable } from '../../lib/postgres.js';
import type { Conditions } from './filters.js';
import type { ClaimedMessage } from './message.js';
import { MESSAGE_COLUMNS, type MessageRow, messageOf } from './message-row.js';
import { tableOf } from './statements.js';

export interface DeadLetter {
  readonly dlqId: string;
  readonly message: ClaimedMessage;
  /** Unix time in microseconds, as text: with the id the place in the order. */
  readonly place: string;
  /** Why no response came. */
  readonly error: string | null;
  /** 0: no response came. */
  readonly status: number;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly body: Buffer;
}

type Row = MessageRow & {
  dlq_id: string;
  place: string;
  error: string | null;
  response_status: number;
  response_headers: Record<string, string[]>;
  response_body: Buffer;
  found: number;
};

/** Bodies of one page together, in bytes; a single entry may have more. */
const PAGE_BYTES = 4 * 1024 * 1024;

export interface DeadLetterPage {
  readonly letters: readonly DeadLetter[];
  readonly hasMore: boolean;
}

export interface TakenLetters {
  readonly messages: readonly ClaimedMessage[];
  /** Whether none was left because of its size. */
  readonly isWhole: boolean;
}

const PLACE = `(extract(epoch from d.created_at) * 1000000)::bigint`;

/** Where a page begins: behind this entry. */
export interface DeadLetterCursor {
  readonly place: string;
  readonly dlqId: string;
}

/** Dead letters as the API asks for them. */
export class DeadLetterStore {
  private readonly letters: string;
  private readonly messages: string;
  private readonly from: string;

  constructor(
    private readonly database: Database,
    schema: string,
  ) {
    this.letters = tableOf(schema, 'dead_letters');
    this.messages = tableOf(schema, 'messages');
    this.from = `${this.letters} d join ${this.messages} m on m.id = d.message_id`;
  }

  /** @param conditions with parameters from $4 on */
  async list(
    { sql, values }: Conditions,
    page: { count: number; latestFirst: boolean; after: DeadLetterCursor | undefined },
  ): Promise<DeadLetterPage> {
    const order = page.latestFirst ? 'desc' : 'asc';
    const behind = page.latestFirst ? '<' : '>';
    const size = `octet_length(body) + octet_length(response_body)`;
    const statement = `with page as (
        select d.id as dlq_id, ${PLACE}::text as place, d.error, d.response_status, d.response_headers, d.response_body,
          ${MESSAGE_COLUMNS}, row_number() over (order by d.created_at ${order}, d.id ${order}) as row
        from ${this.from}
        where ($2::text is null or (${PLACE}, d.id) ${behind} ($2::bigint, $3::text)) and (${sql})
        order by d.created_at ${order}, d.id ${order} limit $1 + 1
      ), sized as (
        select *, sum(${size}) over (order by row) - ${size} as bytes_before, (count(*) over ())::int as found from page
      )
      select * from sized where row <= $1 and bytes_before <= ${PAGE_BYTES} order by row`;
    const { after, count } = page;
    const found = await this.database.query<Row>(statement, [
      count,
      after?.place ?? null,
      after?.dlqId ?? null,
      ...values,
    ]);
    return {
      letters: found.rows.map(letterOf),
      hasMore: (found.rows[0]?.found ?? 0) > found.rows.length,
    };
  }

  /** Deletes at most `limit` entries, earliest first. @param conditions with parameters from $2 on */
  async delete({ sql, values }: Conditions, limit: number): Promise<number> {
    const statement = `delete from ${this.letters} where id in (
        select d.id from ${this.from} where ${sql} order by d.created_at, d.id limit $1
      )`;
    return (await this.database.query(statement, [limit, ...values])).rowCount;
  }

  /**
   * Takes entries out, to be sent again in the same transaction: at most `limit`, earliest first, and no more than a page of
   * bodies. @param conditions with parameters from $2 on
   */
  async take(connection: Queryable, { sql, values }: Conditions, limit: number): Promise<TakenLetters> {
    const statement = `with chosen as (
        select d.id, d.created_at, octet_length(m.body) as size from ${this.from}
        where ${sql} order by d.created_at, d.id limit $1
      ), sized as (
        select id, sum(size) over (order by created_at, id) - size as bytes_before, (count(*) over ())::int as found from chosen
      ), taken as (
        delete from ${this.letters} d using sized where d.id = sized.id and bytes_before <= ${PAGE_BYTES}
        returning d.message_id, d.created_at, d.id, sized.found
      )
      select ${MESSAGE_COLUMNS}, d.found from taken d join ${this.messages} m on m.id = d.message_id order by d.created_at, d.id`;
    const { rows } = await connection.query<MessageRow & { found: number }>(statement, [limit, ...values]);
    return { messages: rows.map(messageOf), isWhole: (rows[0]?.found ?? 0) <= rows.length };
  }
}

function letterOf(row: Row): DeadLetter {
  return {
    dlqId: row.dlq_id,
    message: messageOf(row),
    place: row.place,
    error: row.error,
    status: row.response_status,
    headers: row.response_headers,
    body: row.response_body,
  };
}
