import type { Database } from '../../../lib/postgres/postgres.js';
import { tableOf } from '../store/statements.js';
import { StepSize } from '../store/step-size.js';

/** Messages that one statement cancels at most. */
const STEP = 2_000;
/** Whoever deletes a queue waits for so long, in ms; what is left then is the sweeper's. */
const WAIT_MS = 3_000;
/** One run of the sweeper's cancels for so long, in ms. */
const RUN_MS = 2_000;

/**
 * Deletes ordered queues. The row goes at once and a mark stays, up to which place the queue's messages are still to be
 * cancelled; that takes one step after the other. Nothing lets a marked message go, and one that a queue of the same name
 * gets later stands behind the mark.
 */
export class QueueDeletions {
  private readonly sql: ReturnType<typeof statements>;
  private readonly size = new StepSize(STEP);

  constructor(
    private readonly database: Database,
    schema: string,
  ) {
    this.sql = statements(schema);
  }

  /** Deletes a queue and cancels the messages that wait in it, most of them before this resolves. */
  async delete(name: string): Promise<void> {
    await this.database.transaction(async (connection) => {
      await connection.query(this.sql.lock, [name]);
      await connection.query(this.sql.mark, [name]);
      await connection.query(this.sql.delete, [name]);
    });
    const end = performance.now() + WAIT_MS;
    await this.cancel(name, () => performance.now() > end);
  }

  /** Goes on with what was begun here or elsewhere. @param isOver whether to stop after the present step */
  async finish(isOver: () => boolean): Promise<void> {
    const { rows } = await this.database.query<{ name: string }>(this.sql.marked);
    const end = performance.now() + RUN_MS;
    for (const { name } of rows) await this.cancel(name, () => isOver() || performance.now() > end);
  }

  private async cancel(name: string, isOver: () => boolean): Promise<void> {
    for (let hasMore = true; hasMore && !isOver(); ) {
      const { rowCount } = await this.size.run((rows) => this.database.query(this.sql.cancel, [name, rows]));
      hasMore = rowCount > 0;
      if (!hasMore) await this.database.query(this.sql.unmark, [name]);
    }
  }
}

function statements(schema: string) {
  const messages = tableOf(schema, 'messages');
  const queues = tableOf(schema, 'queues');
  const deletions = tableOf(schema, 'queue_deletions');
  const doomed = `queue_name = $1 and finished_at is null and held = 'order'
    and seq <= (select upto from ${deletions} where name = $1)`;
  return {
    lock: `select from ${queues} where name = $1 for update`,
    mark: `insert into ${deletions} as d (name, upto)
      select $1, seq from ${messages} where queue_name = $1 and finished_at is null and held = 'order'
      order by seq desc limit 1
      on conflict (name) do update set upto = greatest(d.upto, excluded.upto)`,
    delete: `delete from ${queues} where name = $1`,
    marked: `select name from ${deletions} order by name limit 100`,
    cancel: `with gone as (
        update ${messages} m set state = 'CANCELED', finished_at = now(), held = null
        from (select id from ${messages} where ${doomed} order by seq limit $2 for update) doomed
        where m.id = doomed.id returning m.id
      )
      insert into ${tableOf(schema, 'events')} (message_id, state) select id, 'CANCELED' from gone`,
    unmark: `delete from ${deletions} where name = $1 and not exists (select from ${messages} where ${doomed})`,
  } as const;
}
