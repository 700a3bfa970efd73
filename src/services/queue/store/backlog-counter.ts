import type { Database } from '../../../lib/postgres/postgres.js';
import { tableOf } from './statements.js';
import { StepSize } from './step-size.js';

/** Rows that are looked at by one statement. */
const STEP = 5_000;
/** From the end of one count to the beginning of the next, in ms. */
const EVERY_MS = 10_000;
/** So long a count goes on in one sweep, in ms: of a million messages one is complete after about ten sweeps. */
const SWEEP_MS = 250;

/**
 * `waiting`: for its time; `due`: its time has come, and its attempt has not begun; `active`: an attempt is under way;
 * `order` and `flow`: for its turn in a queue or under a flow-control key; `failing`: it becomes a dead letter.
 */
const STATES = ['waiting', 'due', 'active', 'order', 'flow', 'failing'] as const;

export type BacklogState = (typeof STATES)[number];

/** What is stored and not done, in all gateways. */
export interface Backlog {
  readonly messages: Readonly<Record<BacklogState, number>>;
  /** How long the one that is due for the longest has been, in s. */
  readonly oldestDueSeconds: number;
  readonly deadLetters: number;
}

interface MessageStep extends Record<BacklogState, number> {
  readonly found: number;
  readonly last: string | null;
  readonly oldest: number;
}

interface LetterStep {
  readonly found: number;
  readonly at: string | null;
  readonly last: string | null;
}

interface Rows<Row> {
  readonly row: Row;
  readonly isLast: boolean;
}

/** Counts what waits, some rows at each sweep: what a scrape shows is a number that is there. */
export class BacklogCounter {
  /** Of the newest count that is complete. */
  backlog: Backlog | undefined;
  private counting = this.count();
  private nextAt = 0;
  private readonly size = new StepSize(STEP);
  private readonly messages: string;
  private readonly letters: string;

  constructor(
    private readonly database: Database,
    schema: string,
  ) {
    const table = (name: string) => tableOf(schema, name);
    const counts = STATES.map((state) => `count(*) filter (where kind = '${state}')::int as ${state}`);
    this.messages = `with step as materialized (
        select id, due_at, case when held is not null then held when state = 'ACTIVE' then 'active'
          when state = 'FAILING' then 'failing' when due_at <= now() then 'due' else 'waiting' end as kind
        from ${table('messages')} where finished_at is null and ($1::text is null or id > $1) order by id limit $2)
      select count(*)::int as found, max(id) as last, ${counts.join(', ')},
        coalesce(extract(epoch from now() - min(due_at) filter (where kind = 'due')), 0)::float8 as oldest from step`;
    this.letters = `with step as materialized (
        select id, created_at from ${table('dead_letters')}
        where $1::timestamptz is null or (created_at, id) > ($1::timestamptz, $2::text)
        order by created_at, id limit $3)
      select count(*)::int as found, (select created_at::text from step order by created_at desc, id desc limit 1) as at,
        (select id from step order by created_at desc, id desc limit 1) as last from step`;
  }

  /** Goes on with the count; one that fails begins anew. */
  async step(): Promise<void> {
    const until = performance.now() + SWEEP_MS;
    try {
      while (performance.now() >= this.nextAt && performance.now() < until) {
        const { done } = await this.counting.next();
        if (done !== true) continue;
        this.counting = this.count();
        this.nextAt = performance.now() + EVERY_MS;
      }
    } catch (error) {
      this.counting = this.count();
      throw error;
    }
  }

  /** Yields between statements. */
  private async *count(): AsyncGenerator<void, void> {
    const { messages, oldestDueSeconds } = yield* this.countMessages();
    this.backlog = { messages, oldestDueSeconds, deadLetters: yield* this.countLetters() };
  }

  private async *countMessages(): AsyncGenerator<void, Omit<Backlog, 'deadLetters'>> {
    const messages = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<BacklogState, number>;
    let last: string | null = null;
    let oldest = 0;
    for (;;) {
      const { row, isLast }: Rows<MessageStep> = await this.rows(this.messages, [last], 'queue_backlog');
      for (const state of STATES) messages[state] += row[state];
      oldest = Math.max(oldest, row.oldest);
      if (isLast) return { messages, oldestDueSeconds: oldest };
      last = row.last;
      yield;
    }
  }

  private async *countLetters(): AsyncGenerator<void, number> {
    let [count, after]: [number, (string | null)[]] = [0, [null, null]];
    for (;;) {
      const { row, isLast }: Rows<LetterStep> = await this.rows(this.letters, after, 'queue_letters_count');
      count += row.found;
      if (isLast) return count;
      after = [row.at, row.last];
      yield;
    }
  }

  private async rows<Row extends { found: number }>(
    sql: string,
    after: (string | null)[],
    name: string,
  ): Promise<Rows<Row>> {
    return this.size.run(async (most) => {
      const { rows } = await this.database.query<Row>(sql, [...after, most], name);
      const row = rows[0] as Row;
      return { row, isLast: row.found < most };
    });
  }
}
