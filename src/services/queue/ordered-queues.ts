import type { Database, Queryable } from '../../lib/postgres.js';
import { tableOf } from './statements.js';

/** A token to be published, and when it is due. */
export interface DueToken {
  readonly id: string;
  readonly attempt: number;
  readonly delayMs: number;
}

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
  lag: number;
}

/**
 * Queues that keep their messages' order. The order is Postgres': of a queue's unfinished messages only the first
 * `parallelism` have a token in RabbitMQ; the others are held. A message keeps its place until it is delivered or dead
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

  /** Lets the next messages go. @returns their tokens, to be published after the commit; the sweeper finds lost ones */
  async releaseWith(connection: Queryable, name: string): Promise<DueToken[]> {
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

  release(name: string): Promise<DueToken[]> {
    return this.database.patient.transaction((connection) => this.releaseWith(connection, name));
  }

  /** Names of queues in which messages are held. */
  async waiting(): Promise<string[]> {
    return (await this.database.query<{ name: string }>(this.sql.waiting)).rows.map(({ name }) => name);
  }

  /** `undefined` leaves a property as it is. */
  async upsert(name: string, change: { parallelism?: number; paused?: boolean }): Promise<DueToken[]> {
    return this.database.transaction(async (connection) => {
      await connection.query(this.sql.create, [name]);
      await connection.query(this.sql.change, [name, change.parallelism ?? null, change.paused ?? null]);
      return this.releaseWith(connection, name);
    });
  }

  /** Deletes a queue and cancels the messages that wait in it. */
  async delete(name: string): Promise<void> {
    await this.database.transaction(async (connection) => {
      await connection.query(this.sql.lockForDelete, [name]);
      await connection.query(this.sql.cancelHeld, [name]);
      await connection.query(this.sql.delete, [name]);
    });
  }

  async list(name?: string): Promise<OrderedQueue[]> {
    const { rows } = await this.database.query<QueueRow>(this.sql.list, [name ?? null]);
    return rows.map((row) => ({
      name: row.name,
      createdAt: row.created_ms,
      updatedAt: row.updated_ms,
      parallelism: row.parallelism,
      paused: row.paused,
      lag: row.lag,
    }));
  }
}

function statements(schema: string) {
  const messages = tableOf(schema, 'messages');
  const queues = tableOf(schema, 'queues');
  return {
    create: `insert into ${queues} (name) values ($1) on conflict do nothing`,
    keep: `select from ${queues} where name = $1 for key share`,
    lock: `select parallelism, paused from ${queues} where name = $1 for no key update`,
    /** Waits for the publishes that `keep` it */
    lockForDelete: `select from ${queues} where name = $1 for update`,
    /** $1 name, $2 parallelism, $3 grace in ms. A message that somebody cancels at this moment is passed over */
    release: `with busy as (
        select count(distinct coalesce(callback_of, id)) as places from ${messages}
        where queue_name = $1 and finished_at is null and (held is null or held = 'flow')
      ), next as (
        select id from ${messages}
        where queue_name = $1 and finished_at is null and held = 'order'
        order by seq limit greatest(0, $2::int - (select places from busy)) for update skip locked
      )
      update ${messages} m set held = null, due_at = greatest(m.due_at, now()),
        sweep_at = greatest(m.due_at, now()) + $3::float8 * interval '1 millisecond'
      from next where m.id = next.id
      returning m.id, m.attempt, m.seq, greatest(0, extract(epoch from m.due_at - now()) * 1000)::float8 as wait_ms`,
    waiting: `select name from ${queues} q where not paused and exists (
        select from ${messages} where queue_name = q.name and finished_at is null and held = 'order'
      )`,
    change: `update ${queues} set parallelism = coalesce($2::int, parallelism), paused = coalesce($3::bool, paused),
        updated_at = now() where name = $1`,
    cancelHeld: `with gone as (
        update ${messages} set state = 'CANCELED', finished_at = now(), held = null
        where queue_name = $1 and finished_at is null and held = 'order' returning id
      )
      insert into ${tableOf(schema, 'events')} (message_id, state) select id, 'CANCELED' from gone`,
    delete: `delete from ${queues} where name = $1`,
    /** $1 a name, or null for all */
    list: `select name, parallelism, paused, extract(epoch from created_at)::float8 * 1000 as created_ms,
        extract(epoch from updated_at)::float8 * 1000 as updated_ms,
        (select count(*)::int from ${messages}
          where queue_name = q.name and finished_at is null and callback_of is null) as lag
      from ${queues} q where $1::text is null or name = $1 order by name`,
  } as const;
}
