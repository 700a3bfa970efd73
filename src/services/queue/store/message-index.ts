import type { Database } from '../../../lib/postgres/postgres.js';
import type { ClaimedMessage, Ticket } from '../message/message.js';
import type { Conditions } from './conditions.js';
import { MESSAGE_COLUMNS, type MessageRow, messageOf } from './message-row.js';
import { inPieces } from './pieces.js';
import { fromNow, tableOf } from './statements.js';
import { StepSize } from './step-size.js';

/** Messages that one statement looks at: 60 ms where it may take 1,300. */
const STEP = 20_000;
/** Messages that one statement cancels. */
const CANCELLED_AT_ONCE = 500;
/** A search that has found too little goes on for so long, in ms. */
const SEARCH_MS = 6_000;

/** Cancelled messages, and what waited for them. */
export interface Cancelled {
  readonly count: number;
  readonly queues: ReadonlySet<string>;
  readonly flowKeys: ReadonlySet<string>;
  /** The id behind which a search goes on that had no time to look at all messages. */
  readonly next: string | undefined;
}

/** What is to be cancelled: the messages with these ids, or those that fit. */
export interface CancelQuery {
  readonly ids?: readonly string[] | undefined;
  /** Of messages in these queues, or under these keys, an index is asked first. */
  readonly queueNames?: readonly string[] | undefined;
  readonly flowKeys?: readonly string[] | undefined;
  /** On the message `m`, with parameters from $4 on. */
  readonly conditions: Conditions;
}

/** What became of a message that was to be delivered now: its ticket, or why it has to stay as it is. */
export type Expedited = Ticket | 'missing' | 'over' | 'ordered' | 'underWay' | 'held' | 'due' | 'timer';

type CancelRow = { id: string; queue_name: string | null; flow_key: string | null };

/** Messages as the API asks for them. */
export class MessageIndex {
  private readonly messages: string;
  private readonly events: string;
  private readonly deduplication: string;

  constructor(
    private readonly database: Database,
    schema: string,
    /** How long after its due time a message without a claim counts as lost by RabbitMQ, in ms. */
    private readonly graceMs: number,
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

  /**
   * Makes a message due that waits for its time or for its next attempt. It keeps its attempt, so the ticket that lies in
   * RabbitMQ until the old time is refused then as any late one is. Who waited for the lock began before the one that had it.
   */
  async expedite(id: string): Promise<Expedited> {
    type Row = { attempt: number; reason: Exclude<Expedited, Ticket> | null };
    const { rows } = await this.database.query<Row>(
      `with m as (
        select id, attempt, case
            when finished_at is not null or state = 'FAILING' then 'over'
            when queue_name is not null and callback_of is null then 'ordered'
            when run_role = 'timer' then 'timer'
            when held is not null then 'held'
            when lease_until > now() then 'underWay'
            when due_at <= clock_timestamp() then 'due' end as reason
        from ${this.messages} where id = $1 for update
      ), expedited as (
        update ${this.messages} set due_at = now(), sweeps = 0, sweep_at = ${fromNow('$2::float8')},
          not_before = case when ${this.messages}.attempt = 0
            then least(not_before, (extract(epoch from now()) * 1000)::bigint) else not_before end
        from m where ${this.messages}.id = m.id and m.reason is null returning ${this.messages}.id
      )
      select attempt, reason from m`,
      [id, this.graceMs],
      'queue_expedite',
    );
    const [row] = rows;
    return row === undefined ? 'missing' : (row.reason ?? { id, attempt: row.attempt });
  }

  /** Attempts under way in all gateways. */
  async running(): Promise<number> {
    type Step = { running: number; last: string | null; looked: number; size: number };
    let running = 0;
    const size = new StepSize(STEP);
    for (let after = ''; ; ) {
      const { rows } = await size.run((step) =>
        this.database.query<Step>(
          `select count(*) filter (where state = 'ACTIVE' and lease_until > now())::int as running, max(id) as last,
            count(*)::int as looked, $2::int as size
          from (select id, state, lease_until from ${this.messages}
            where finished_at is null and id > $1 order by id limit $2::int) step`,
          [after, step],
        ),
      );
      const [step] = rows;
      running += step?.running ?? 0;
      if (step?.last == null || step.looked < step.size) return running;
      after = step.last;
    }
  }

  /**
   * Cancels at most `limit` messages that are not finished, in the order of their ids. A request under way goes on, but
   * nothing follows from it.
   * @param after the id behind which a search begins
   */
  async cancel(query: CancelQuery, limit: number, after = ''): Promise<Cancelled> {
    const queues = new Set<string>();
    const flowKeys = new Set<string>();
    let count = 0;
    const cancelAll = async (ids: readonly string[]) => {
      for (const piece of inPieces(ids, () => 1, CANCELLED_AT_ONCE)) {
        const rows = await this.cancelThese(piece);
        count += rows.length;
        for (const { queue_name, flow_key } of rows) {
          if (queue_name !== null) queues.add(queue_name);
          if (flow_key !== null) flowKeys.add(flow_key);
        }
      }
    };
    const ended = (next?: string) => ({ count, queues, flowKeys, next });
    const named = query.ids ?? (await this.fewOf(query));
    if (named !== undefined) {
      const { fitting } = await this.fitting(query.conditions, limit, { ids: named, most: named.length });
      await cancelAll(fitting);
      return ended();
    }
    const until = performance.now() + SEARCH_MS;
    const size = new StepSize(STEP);
    for (let last: string | undefined = after; ; ) {
      const begin: string = last;
      const step = await size.run((most) =>
        this.fitting(query.conditions, limit - count, { after: begin, most }),
      );
      await cancelAll(step.fitting);
      last = step.last;
      if (count >= limit || last === undefined) return ended();
      if (performance.now() > until) return ended(last);
    }
  }

  /** Of queues and keys that have no more than a step takes: all their messages. */
  private async fewOf({ queueNames, flowKeys }: CancelQuery): Promise<string[] | undefined> {
    const [column, values] = queueNames === undefined ? ['flow_key', flowKeys] : ['queue_name', queueNames];
    if (values === undefined) return undefined;
    const { rows } = await this.database.query<{ id: string }>(
      `select id from ${this.messages} where ${column} = any($1::text[]) and finished_at is null limit ${STEP + 1}`,
      [values],
    );
    return rows.length > STEP ? undefined : rows.map(({ id }) => id);
  }

  /** At most `limit` that fit among these ids or of the next step; `last`: the end of a step behind which there may be more. */
  private async fitting(
    { sql, values }: Conditions,
    limit: number,
    { ids, after, most }: { ids?: readonly string[]; after?: string; most: number },
  ): Promise<{ fitting: string[]; last: string | undefined }> {
    const among = ids === undefined ? 'id > $1' : 'id = any($1::text[])';
    type Found = { fitting: string[] | null; last: string | null; looked: number };
    const { rows } = await this.database.query<Found>(
      `with step as materialized (
          select m.id, m.state <> 'FAILING' and (${sql}) as fits from (
            select * from ${this.messages} where finished_at is null and run_no is null and ${among} order by id limit $2
          ) m
        )
        select max(id) as last, count(*)::int as looked,
          (array_agg(id order by id) filter (where fits))[1:$3::int] as fitting from step`,
      [ids ?? after, most, limit, ...values],
    );
    const { fitting, last = null, looked = 0 } = rows[0] ?? {};
    return {
      fitting: fitting ?? [],
      last: ids !== undefined || looked < most || last === null ? undefined : last,
    };
  }

  private async cancelThese(ids: readonly string[]): Promise<readonly CancelRow[]> {
    const statement = `with chosen as (
        select id from ${this.messages} m
        where id = any($1::text[]) and finished_at is null and state <> 'FAILING' and run_no is null order by id for update
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
      select id, queue_name, flow_key from gone`;
    return (await this.database.query<CancelRow>(statement, [ids])).rows;
  }
}
