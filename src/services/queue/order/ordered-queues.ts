import type { Database, Queryable, QueryResult } from '../../../lib/postgres/postgres.js';
import type { DueTicket } from '../message/message.js';
import { tableOf } from '../store/statements.js';

export interface OrderedQueue {
  readonly name: string;
  /** Unix time in ms. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Messages under way at once. */
  readonly parallelism: number;
  readonly paused: boolean;
  /** Messages that are not finished. */
  readonly lag: number;
}

interface QueueRow {
  name: string;
  created_ms: number;
  updated_ms: number;
  parallelism: number;
  paused: boolean;
  /** Messages that have had their turn and are not finished. */
  begun: number;
  /** Messages that wait for it, of the first `COUNTED_FIRST`, and the place of the last of these. */
  waiting: number;
  last: string | null;
}

/** What a change of a queue lets go. */
export interface QueueChange {
  /** To be published after the commit. */
  readonly tickets: readonly DueTicket[];
  readonly returnedSlots: readonly ReturnedSlots[];
}

/** Attempts under a flow-control key that were let in and held before they began: their room is others'. */
export interface ReturnedSlots {
  readonly key: string;
  readonly unused: number;
}

/** Queues of one step of a walk over all of them. */
const STEP = 2_000;
/** Queues of one step of a list, and messages that it counts of each. */
const LISTED = 100;
const COUNTED_FIRST = 1_000;
/** Messages of one queue that a statement counts: 0.1 s. */
const COUNTED = 100_000;

/**
 * Queues that keep their messages' order. The order is Postgres': of a queue's unfinished messages only the first
 * `parallelism` have a ticket in RabbitMQ; the others are held. A message keeps its place until it is delivered or dead
 * and its callbacks are too. A delayed message keeps its place in the order as well.
 */
export class OrderedQueues {
  private readonly sql: ReturnType<typeof statements>;

  constructor(
    private readonly database: Database,
    schema: string,
    private readonly graceMs: number,
  ) {
    this.sql = statements(schema);
  }

  /**
   * Makes the queue if need be and keeps it from being deleted until the transaction ends. Waits for nobody who lets its
   * messages go: a publish is not held up by deliveries.
   */
  async keep(connection: Queryable, name: string): Promise<void> {
    // a second time where somebody deleted it between the two statements
    for (let tries = 0; tries < 2; tries++) {
      await connection.query(this.sql.create, [name], 'queue_ordered_create');
      if ((await connection.query(this.sql.keep, [name], 'queue_ordered_keep')).rowCount > 0) return;
    }
    throw new Error(`the queue ${name} was deleted twice`);
  }

  /** Lets the next messages go. @returns their tickets, to be published after the commit; the sweeper finds lost ones */
  async releaseWith(connection: Queryable, name: string): Promise<DueTicket[]> {
    type Locked = { parallelism: number; paused: boolean };
    const [queue] = (await connection.query<Locked>(this.sql.lock, [name], 'queue_ordered_lock')).rows;
    if (queue === undefined || queue.paused) return [];
    const values = [name, queue.parallelism, this.graceMs];
    const released = await connection.query<{ id: string; attempt: number; wait_ms: number; seq: string }>(
      this.sql.release,
      values,
      'queue_ordered_release',
    );
    return released.rows
      .sort((a, b) => Number(a.seq) - Number(b.seq))
      .map(({ id, attempt, wait_ms }) => ({ id, attempt, delayMs: wait_ms }));
  }

  release(name: string): Promise<DueTicket[]> {
    return this.database.patient.transaction((connection) => this.releaseWith(connection, name));
  }

  /** Names of queues in which messages are held that could go, in steps. */
  async *waiting(): AsyncGenerator<readonly string[]> {
    type Step = { looked: number; last: string | null; names: string[] };
    for (let after: string | null = ''; after !== null; ) {
      const result: QueryResult<Step> = await this.database.query<Step>(this.sql.waiting, [after]);
      const step: Step | undefined = result.rows[0];
      yield step?.names ?? [];
      after = step === undefined || step.looked < STEP ? null : step.last;
    }
  }

  /** `undefined` leaves a property as it is. */
  async upsert(name: string, change: { parallelism?: number; paused?: boolean }): Promise<QueueChange> {
    return this.database.transaction(async (connection) => {
      await connection.query(this.sql.create, [name]);
      await connection.query(this.sql.change, [name, change.parallelism ?? null, change.paused ?? null]);
      const returnedSlots =
        change.paused === true ? (await connection.query<ReturnedSlots>(this.sql.hold, [name])).rows : [];
      return { tickets: await this.releaseWith(connection, name), returnedSlots };
    });
  }

  /** Holds what has its turn in a paused queue and waits for an attempt: one that ended just when its queue was paused. */
  async holdPaused(): Promise<readonly ReturnedSlots[]> {
    return (await this.database.query<ReturnedSlots>(this.sql.hold, [null])).rows;
  }

  async exists(name: string): Promise<boolean> {
    return (await this.database.query(this.sql.exists, [name])).rowCount > 0;
  }

  async find(name: string): Promise<OrderedQueue | undefined> {
    const [row] = (await this.database.query<QueueRow>(this.sql.list, [name, ''])).rows;
    return row && this.queueOf(row);
  }

  /** All queues by their names, read a step at a time. */
  async *list(): AsyncGenerator<OrderedQueue> {
    for (let after: string | undefined = ''; after !== undefined; ) {
      const { rows }: QueryResult<QueueRow> = await this.database.query<QueueRow>(this.sql.list, [
        null,
        after,
      ]);
      for (const row of rows) yield await this.queueOf(row);
      after = rows.length < LISTED ? undefined : rows.at(-1)?.name;
    }
  }

  /** Messages that wait are counted on where their number is large. */
  private async queueOf(row: QueueRow): Promise<OrderedQueue> {
    let { waiting } = row;
    for (let last = row.last, counted = waiting === COUNTED_FIRST; counted && last !== null; ) {
      type Counted = { count: number; last: string | null };
      const { rows } = await this.database.query<Counted>(this.sql.count, [row.name, last]);
      waiting += rows[0]?.count ?? 0;
      counted = rows[0]?.count === COUNTED;
      last = rows[0]?.last ?? null;
    }
    return {
      name: row.name,
      createdAt: row.created_ms,
      updatedAt: row.updated_ms,
      parallelism: row.parallelism,
      paused: row.paused,
      lag: row.begun + waiting,
    };
  }
}

function statements(schema: string) {
  const messages = tableOf(schema, 'messages');
  const queues = tableOf(schema, 'queues');
  // those of a queue of the same name that was deleted before are only still to be cancelled
  const alive = (name: string) =>
    `seq > coalesce((select upto from ${tableOf(schema, 'queue_deletions')} where name = ${name}), 0)`;
  return {
    create: `insert into ${queues} (name) values ($1) on conflict do nothing`,
    keep: `select from ${queues} where name = $1 for key share`,
    lock: `select parallelism, paused from ${queues} where name = $1 for no key update`,
    /** $1 name, $2 parallelism, $3 grace in ms. A message that somebody cancels at this moment is passed over */
    release: `with busy as (
        select count(distinct coalesce(callback_of, id)) as places from ${messages}
        where queue_name = $1 and finished_at is null and (held is null or held = 'flow')
      ), next as (
        select id from ${messages}
        where queue_name = $1 and finished_at is null and held = 'order' and ${alive('$1')}
        order by seq limit greatest(0, $2::int - (select places from busy)) for update skip locked
      )
      update ${messages} m set held = null, due_at = greatest(m.due_at, now()),
        sweep_at = greatest(m.due_at, now()) + $3::float8 * interval '1 millisecond'
      from next where m.id = next.id
      returning m.id, m.attempt, m.seq, greatest(0, extract(epoch from m.due_at - now()) * 1000)::float8 as wait_ms`,
    /** Of the queues behind $1, at most `STEP`; `last` is the last that was looked at */
    waiting: `with step as materialized (select name, paused from ${queues} where name > $1 order by name limit ${STEP})
      select (select count(*)::int from step) as looked, (select max(name) from step) as last, array(
        select name from step q where not paused and exists (
          select from ${messages}
          where queue_name = q.name and finished_at is null and held = 'order' and ${alive('q.name')}
        )
      ) as names`,
    change: `update ${queues} set parallelism = coalesce($2::int, parallelism), paused = coalesce($3::bool, paused),
        updated_at = now() where name = $1`,
    /**
     * $1 a name, or null for all. No message keeps its turn that is not being delivered; resumed, the queue gives it to the
     * first again. There are no more of these than the parallelism. What a flow-control key had let in must be let in anew:
     * meanwhile another has its room.
     */
    hold: `with stopped as (
        update ${messages} m set held = 'order', sweep_at = 'infinity'
        from ${queues} q
        where q.paused and ($1::text is null or q.name = $1) and m.queue_name = q.name and m.finished_at is null
          and (m.held is null or m.held = 'flow') and m.callback_of is null and m.state <> 'FAILING'
          and (m.lease_until is null or m.lease_until < now())
        returning m.id, m.claims
      ), returned as (
        delete from ${tableOf(schema, 'flow_running')} r using stopped where r.message_id = stopped.id
        returning r.key, r.claims > stopped.claims as unused
      )
      select key, (count(*) filter (where unused))::int as unused from returned group by key`,
    exists: `select from ${queues} where name = $1`,
    /** $1 a name, or null for all; $2 the name behind which the step begins */
    list: `select name, parallelism, paused, extract(epoch from created_at)::float8 * 1000 as created_ms,
        extract(epoch from updated_at)::float8 * 1000 as updated_ms,
        (select count(*)::int from ${messages}
          where queue_name = q.name and finished_at is null and held is null and callback_of is null)
        + (select count(*)::int from ${messages}
          where queue_name = q.name and finished_at is null and held = 'flow' and callback_of is null) as begun,
        held.count as waiting, held.last
      from ${queues} q, lateral (select count(*)::int as count, max(seq)::text as last from (
          select seq from ${messages} where queue_name = q.name and finished_at is null and held = 'order' and ${alive('q.name')}
          order by seq limit ${COUNTED_FIRST}
        ) first) held
      where ($1::text is null or name = $1) and name > $2 order by name limit ${LISTED}`,
    /** $1 a name, $2 the place behind which the step begins */
    count: `select count(*)::int as count, max(seq)::text as last from (
        select seq from ${messages} where queue_name = $1 and finished_at is null and held = 'order' and seq > $2
        order by seq limit ${COUNTED}
      ) step`,
  } as const;
}
