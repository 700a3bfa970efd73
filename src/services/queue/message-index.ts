import type { Database } from '../../lib/postgres.js';
import type { Conditions } from './filters.js';
import type { ClaimedMessage } from './message.js';
import { MESSAGE_COLUMNS, type MessageRow, messageOf } from './message-row.js';
import { tableOf } from './statements.js';

/** Cancelled messages, and what waited for them. */
export interface Cancelled {
  readonly count: number;
  readonly queues: readonly string[];
  readonly flowKeys: readonly string[];
}

/** Messages as the API asks for them. */
export class MessageIndex {
  private readonly messages: string;
  private readonly events: string;
  private readonly deduplication: string;

  constructor(
    private readonly database: Database,
    schema: string,
  ) {
    this.messages = tableOf(schema, 'messages');
    this.events = tableOf(schema, 'events');
    this.deduplication = tableOf(schema, 'deduplication');
  }

  async get(id: string): Promise<ClaimedMessage | undefined> {
    const sql = `select ${MESSAGE_COLUMNS} from ${this.messages} m where id = $1`;
    const [row] = (await this.database.query<MessageRow>(sql, [id], 'queue_message')).rows;
    return row === undefined ? undefined : messageOf(row);
  }

  /** Cancels at most `limit` messages that are not finished. A request under way goes on, but nothing follows from it. */
  async cancel({ sql, values }: Conditions, limit: number): Promise<Cancelled> {
    const statement = `with chosen as (
        select id from ${this.messages} m
        where finished_at is null and state <> 'FAILING' and (${sql})
        order by id limit $1 for update
      ), gone as (
        update ${this.messages} m set state = 'CANCELED', finished_at = now(), held = null, lease_until = null
        from chosen where m.id = chosen.id returning m.id, m.queue_name, m.flow_key
      ), forgotten as (
        delete from ${this.deduplication} where message_id in (select id from gone)
      ), log as (
        insert into ${this.events} (message_id, state, at)
        select id, state, now() + place * interval '1 microsecond' from gone,
          (values ('CANCEL_REQUESTED', 0), ('CANCELED', 1)) as step (state, place)
      )
      select count(*)::int as count, coalesce(array_agg(distinct queue_name) filter (where queue_name is not null), '{}') as queues,
        coalesce(array_agg(distinct flow_key) filter (where flow_key is not null), '{}') as "flowKeys"
      from gone`;
    const { rows } = await this.database.query<Cancelled>(statement, [limit, ...values]);
    return rows[0] ?? { count: 0, queues: [], flowKeys: [] };
  }
}
