import type { Database, Queryable, QueryResult } from '../../../lib/postgres/postgres.js';
import type { DueTicket, FlowControl, Ticket } from '../message/message.js';
import {
  ATTEMPTS_STEP,
  COUNTED,
  COUNTED_FIRST,
  flowStatements,
  KEYS_STEP,
  LISTED,
} from '../store/flow-statements.js';

export interface FlowState {
  readonly key: string;
  /** `null`: no limit. */
  readonly parallelism: number | null;
  readonly rate: number | null;
  /** Seconds. */
  readonly period: number;
  readonly paused: boolean;
  readonly pinnedParallelism: boolean;
  readonly pinnedRate: boolean;
  /** Unix time in seconds. */
  readonly periodStart: number;
  /** Attempts begun in the present period. */
  readonly rateCount: number;
  readonly running: number;
  readonly waiting: number;
}

type ListRow = Omit<FlowState, 'running' | 'waiting'> & {
  /** Of the first attempts that were `counted`. */
  readonly running: number;
  readonly counted: number;
  /** Of the first messages that wait; `last` is the place of the last of these. */
  readonly waiting: number;
  readonly last: string | null;
};

/** A step of a count. */
interface Counted {
  readonly count: number;
  readonly looked: number;
  readonly last: string | null;
}

/** Most keys of one list. */
export const MOST_LISTED = 1_000;

interface LockedRow {
  parallelism: number | null;
  rate: number | null;
  /** Seconds. */
  period: number;
  paused: boolean;
  rate_count: number;
  period_left_ms: number;
}

/** No more messages are let go at once; each end of an attempt lets further ones go. */
const MOST_RELEASED = 1_000;

/** Messages that were let go, whose tickets are to be published now, and when the rate will let further ones go. */
export interface Released {
  readonly tickets: readonly DueTicket[];
  readonly roomInMs: number | undefined;
}

interface Room {
  /** Attempts that may begin now. */
  readonly places: number;
  /** When the rate allows more. */
  readonly inMs: number | undefined;
  /** A period of the rate; `undefined` without one. */
  readonly periodMs: number | undefined;
}

/**
 * Limits that messages with one key share. Every message that is due is held in Postgres, without a ticket, until it is
 * let in, in the order of their publishing. Who lets in has the key's lock; publishes and claims need none. What is under
 * way is counted by leases, so a crash frees its room.
 */
export class FlowControls {
  private readonly sql: ReturnType<typeof flowStatements>;

  constructor(
    private readonly database: Database,
    schema: string,
    private readonly graceMs: number,
  ) {
    this.sql = flowStatements(schema);
  }

  /**
   * The newest message's limits are the key's, unless they are pinned. Waits for nobody: while another lets messages go it
   * leaves that to `release`.
   */
  async remember(connection: Queryable, { key, parallelism, rate, period }: FlowControl): Promise<void> {
    await connection.query(this.sql.remember, [key, parallelism, rate, period], 'queue_flow_remember');
  }

  /** A message whose ticket came, and which was not let in: it waits for its turn. */
  async hold({ id, attempt }: Ticket): Promise<void> {
    await this.database.patient.query(this.sql.hold, [id, attempt], 'queue_flow_hold');
  }

  /**
   * Lets as many held messages go as the key has room for.
   * @param flow limits that a message brought
   * @param unused slots that attempts were admitted to and did not use
   */
  release(key: string, flow: FlowControl | undefined, unused: number): Promise<Released> {
    return this.database.patient.transaction(async (connection) => {
      if (flow !== undefined) {
        const { parallelism, rate, period } = flow;
        await connection.query(this.sql.adopt, [key, parallelism, rate, period], 'queue_flow_adopt');
      }
      const { places, inMs, periodMs } = await this.roomOf(connection, key, unused);
      if (places < 1 && unused === 0) return { tickets: [], roomInMs: inMs };
      const values = [key, Math.max(0, Math.min(places, MOST_RELEASED)), this.graceMs, unused];
      type Row = { id: string; attempt: number };
      const { rows } = await connection.query<Row>(this.sql.release, values, 'queue_flow_release');
      const tickets = rows.map(({ id, attempt }) => ({ id, attempt, delayMs: 0 }));
      if (places < 1) return { tickets, roomInMs: inMs };
      // there may be more, for which nobody will ask when the period that these begin is over
      return { tickets, roomInMs: rows.length < places ? undefined : periodMs };
    });
  }

  /** Keys under which messages are held that could go, in steps. */
  async *waiting(): AsyncGenerator<readonly string[]> {
    type Step = { looked: number; last: string | null; keys: string[] };
    for (let after: string | null = ''; after !== null; ) {
      const result: QueryResult<Step> = await this.database.query<Step>(this.sql.waiting, [after]);
      const step: Step | undefined = result.rows[0];
      yield step?.keys ?? [];
      after = step === undefined || step.looked < KEYS_STEP ? null : step.last;
    }
  }

  /** One key, or the first `MOST_LISTED` whose name contains `search`. */
  async list(key: string | null, search: string | null = null): Promise<FlowState[]> {
    const states: FlowState[] = [];
    for (let after = ''; ; after = states.at(-1)?.key ?? after) {
      const { rows } = await this.database.query<ListRow>(this.sql.list, [key, search, after]);
      for (const row of rows) states.push(await this.stateOf(row));
      if (rows.length < LISTED || states.length >= MOST_LISTED) return states;
    }
  }

  /** Attempts and messages are counted on where their number is large. */
  private async stateOf({ counted, last, ...row }: ListRow): Promise<FlowState> {
    const { countRunning, countWaiting } = this.sql;
    let { running, waiting } = row;
    if (counted === COUNTED_FIRST) running = await this.count(countRunning, row.key, '', ATTEMPTS_STEP);
    if (waiting === COUNTED_FIRST && last !== null)
      waiting += await this.count(countWaiting, row.key, last, COUNTED);
    return { ...row, running, waiting };
  }

  private async count(statement: string, key: string, from: string, step: number): Promise<number> {
    let count = 0;
    for (let after: string | null = from; after !== null; ) {
      const { rows }: { rows: Counted[] } = await this.database.query<Counted>(statement, [key, after]);
      count += rows[0]?.count ?? 0;
      after = rows[0]?.looked === step ? rows[0].last : null;
    }
    return count;
  }

  /** @returns false when there is no such key */
  async setPaused(key: string, paused: boolean): Promise<boolean> {
    return (await this.database.query(this.sql.pause, [key, paused])).rowCount > 0;
  }

  /** Fixes the given limits; a pinned rate begins a new period. */
  async pin(key: string, pinned: { parallelism?: number; rate?: number; period?: number }): Promise<boolean> {
    const { parallelism = null, rate = null, period = null } = pinned;
    return (await this.database.query(this.sql.pin, [key, parallelism, rate, period])).rowCount > 0;
  }

  async unpin(key: string, { parallelism, rate }: { parallelism: boolean; rate: boolean }): Promise<boolean> {
    return (await this.database.query(this.sql.unpin, [key, parallelism, rate])).rowCount > 0;
  }

  async resetRate(key: string): Promise<boolean> {
    return (await this.database.query(this.sql.resetRate, [key])).rowCount > 0;
  }

  /** Takes the key's lock. */
  private async roomOf(connection: Queryable, key: string, unused: number): Promise<Room> {
    const { rows } = await connection.query<LockedRow>(this.sql.lock, [key], 'queue_flow_lock');
    const [row] = rows;
    const nothing = { inMs: undefined, periodMs: undefined };
    if (row === undefined) return { ...nothing, places: MOST_RELEASED };
    if (row.paused) return { ...nothing, places: 0 };
    const { rate, parallelism, period, rate_count: count, period_left_ms: leftMs } = row;
    if (rate === null && parallelism === null) return { ...nothing, places: MOST_RELEASED };
    const rateLeft = rate === null ? MOST_RELEASED : rate - (leftMs > 0 ? Math.max(0, count - unused) : 0);
    const periodMs = rate === null ? undefined : period * 1_000;
    if (rateLeft < 1) return { places: 0, inMs: leftMs, periodMs };
    const busy = await connection.query<Busy>(this.sql.busy, [key], 'queue_flow_busy');
    const { running = 0, unclaimed = 0 } = busy.rows[0] ?? {};
    // attempts that were let in and wait for this gateway will begin in this period
    const begins = rate === null ? rateLeft : Math.min(rateLeft, rate - unclaimed);
    if (begins < 1) return { places: 0, inMs: periodMs, periodMs };
    const places = parallelism === null ? begins : Math.min(begins, parallelism - running);
    return { places, inMs: undefined, periodMs };
  }
}

interface Busy {
  /** Attempts under way, and those that may begin. */
  readonly running: number;
  /** Of them, those that may begin. */
  readonly unclaimed: number;
}
