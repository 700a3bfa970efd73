import type { Database, Queryable } from '../../../lib/postgres/postgres.js';
import type { ClaimedMessage } from '../message/message.js';
import {
  type DeadLetterCursor,
  type DeadLetterPage,
  type DeadLetterQuery,
  DeadLetterSearch,
  type FoundLetter,
} from './dead-letter-search.js';
import { MESSAGE_COLUMNS, type MessageRow, messageOf } from './message-row.js';
import { inPieces } from './pieces.js';
import { FREED } from './purge.js';
import { tableOf } from './statements.js';

export interface DeadLetter {
  readonly dlqId: string;
  readonly message: ClaimedMessage;
  /** Why no response came. */
  readonly error: string | null;
  /** 0: no response came. */
  readonly status: number;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly body: Buffer;
}

type Row = MessageRow & {
  dlq_id: string;
  error: string | null;
  status: number;
  response_headers: Record<string, string[]>;
  response_body: Buffer;
};

/** Bodies of one page, or of what one statement changes, together, in bytes; a single entry may have more. */
const PAGE_BYTES = 4 * 1024 * 1024;
/** For what lies about an entry beside its bodies. */
const ENTRY_BYTES = 16 * 1024;

export interface LetterPage {
  readonly letters: readonly DeadLetter[];
  /** Behind which the next page begins; `undefined`: there is none. */
  readonly next: DeadLetterCursor | undefined;
}

/** Dead letters as the API asks for them. */
export class DeadLetterStore {
  private readonly letters: string;
  private readonly messages: string;
  private readonly search: DeadLetterSearch;

  constructor(
    private readonly database: Database,
    listings: Queryable,
    schema: string,
  ) {
    this.letters = tableOf(schema, 'dead_letters');
    this.messages = tableOf(schema, 'messages');
    this.search = new DeadLetterSearch(listings, schema);
  }

  /** A page of at most `count` letters and 4 MiB of bodies; where few fit it may have fewer, and a cursor all the same. */
  async list(query: DeadLetterQuery, page: DeadLetterPage): Promise<LetterPage> {
    const found = await this.search.find(query, page);
    const [fitting = []] = pieces(found.letters);
    const { rows } = await this.database.query<Row>(
      `select d.id as dlq_id, m.failure_error as error, m.failure_status as status, m.failure_headers as response_headers,
          m.failure_body as response_body, ${MESSAGE_COLUMNS}
        from unnest($1::text[]) with ordinality as wanted (id, place)
          join ${this.letters} d on d.id = wanted.id join ${this.messages} m on m.id = d.message_id
        order by wanted.place`,
      [fitting.map(({ dlqId }) => dlqId)],
    );
    return {
      letters: rows.map(letterOf),
      next: fitting.length < found.letters.length ? fitting.at(-1) : found.next,
    };
  }

  /** Letters in the order of their time, in pieces of at most 4 MiB of bodies, and where the search goes on. */
  async find(
    query: DeadLetterQuery,
    page: DeadLetterPage,
  ): Promise<{ pieces: readonly string[][]; next: DeadLetterCursor | undefined }> {
    const { letters, next } = await this.search.find(query, page);
    return { pieces: pieces(letters).map((piece) => piece.map(({ dlqId }) => dlqId)), next };
  }

  /** @returns how many of them there were */
  async delete(ids: readonly string[]): Promise<number> {
    const statement = `with gone as (
        delete from ${this.letters} where id = any($1::text[]) returning message_id
      )
      update ${this.messages} m set ${FREED} from gone where m.id = gone.message_id`;
    return (await this.database.query(statement, [ids])).rowCount;
  }

  /** Takes letters out, to be sent again in the same transaction. @returns the messages of those that were there, in their order */
  async take(connection: Queryable, ids: readonly string[]): Promise<ClaimedMessage[]> {
    const statement = `with gone as (
        delete from ${this.letters} where id = any($1::text[]) and run_no is null returning id, message_id
      ), freed as (
        update ${this.messages} m set ${FREED} from gone where m.id = gone.message_id
      )
      select ${MESSAGE_COLUMNS} from gone join ${this.messages} m on m.id = gone.message_id
      order by array_position($1::text[], gone.id)`;
    return (await connection.query<MessageRow>(statement, [ids])).rows.map(messageOf);
  }
}

function pieces(letters: readonly FoundLetter[]): (readonly FoundLetter[])[] {
  return [...inPieces(letters, ({ size }) => size + ENTRY_BYTES, PAGE_BYTES)];
}

function letterOf(row: Row): DeadLetter {
  return {
    dlqId: row.dlq_id,
    message: messageOf(row),
    error: row.error,
    status: row.status,
    headers: row.response_headers,
    body: row.response_body,
  };
}
