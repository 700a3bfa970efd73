import type { Database, Queryable } from '../../lib/postgres.js';
import { flowStatements } from './flow-statements.js';
import type { ClaimedMessage, FlowControl, Token } from './message.js';
import type { DueToken } from './ordered-queues.js';
import type { MessageStore } from './store.js';

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

/** A message that may be delivered now, or how long until its key has room by itself (`undefined`: when an attempt ends). */
export type FlowClaim =
  | { readonly message: ClaimedMessage }
  | { readonly message: undefined; readonly roomInMs: number | undefined };

/** Messages that were let go, whose tokens are to be published now, and when the rate will let further ones go. */
export interface Released {
  readonly tokens: readonly DueToken[];
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
 * Limits that messages with one key share. A message over the limit is held in Postgres, without a token, until there is
 * room. What is under way is counted by leases, so a crash frees its room.
 */
export class FlowControls {
  private readonly sql: ReturnType<typeof flowStatements>;

  constructor(
    private readonly database: Database,
    schema: string,
    private readonly store: MessageStore,
    private readonly graceMs: number,
  ) {
    this.sql = flowStatements(schema);
  }

  /** The newest message's limits are the key's, unless they are pinned. */
  async remember(connection: Queryable, { key, parallelism, rate, period }: FlowControl): Promise<void> {
    await connection.query(this.sql.remember, [key, parallelism, rate, period], 'queue_flow_remember');
  }

  /** Claims a token's message if its key has room; otherwise the message is held. */
  claim(token: Token, key: string): Promise<FlowClaim> {
    return this.database.patient.transaction(async (connection) => {
      const room = await this.roomOf(connection, key);
      if (room.places < 1) {
        await connection.query(this.sql.hold, [token.id, token.attempt], 'queue_flow_hold');
        return { message: undefined, roomInMs: room.inMs };
      }
      const message = await this.store.claimUnderKey(connection, token);
      if (message === undefined) return { message, roomInMs: undefined };
      await connection.query(this.sql.begin, [key, message.id, message.claims], 'queue_flow_begin');
      return { message };
    });
  }

  /** Lets as many held messages go as the key has room for. */
  release(key: string): Promise<Released> {
    return this.database.patient.transaction(async (connection) => {
      const { places, inMs, periodMs } = await this.roomOf(connection, key);
      if (places < 1) return { tokens: [], roomInMs: inMs };
      const values = [key, Math.min(places, MOST_RELEASED), this.graceMs];
      type Row = { id: string; attempt: number };
      const { rows } = await connection.query<Row>(this.sql.release, values, 'queue_flow_release');
      const tokens = rows.map(({ id, attempt }) => ({ id, attempt, delayMs: 0 }));
      // there may be more, for which nobody will ask when the period that these begin is over
      return { tokens, roomInMs: rows.length < places ? undefined : periodMs };
    });
  }

  /** Keys under which messages are held. */
  async waiting(): Promise<string[]> {
    return (await this.database.query<{ key: string }>(this.sql.waiting)).rows.map(({ key }) => key);
  }

  /** One key, or all whose name contains `search`. */
  async list(key: string | null, search: string | null = null): Promise<FlowState[]> {
    return (await this.database.query<FlowState>(this.sql.list, [key, search])).rows;
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

  /** To be asked under the key's lock, which this takes. */
  private async roomOf(connection: Queryable, key: string): Promise<Room> {
    const { rows } = await connection.query<LockedRow>(this.sql.lock, [key], 'queue_flow_lock');
    const [row] = rows;
    const nothing = { inMs: undefined, periodMs: undefined };
    if (row === undefined) return { ...nothing, places: MOST_RELEASED };
    if (row.paused) return { ...nothing, places: 0 };
    const { rate, parallelism, period, rate_count: count, period_left_ms: leftMs } = row;
    const rateLeft = rate === null ? MOST_RELEASED : rate - (leftMs > 0 ? count : 0);
    const periodMs = rate === null ? undefined : period * 1_000;
    if (rateLeft < 1) return { places: 0, inMs: leftMs, periodMs };
    if (parallelism === null) return { places: rateLeft, inMs: undefined, periodMs };
    const busy = await connection.query<{ running: number }>(this.sql.busy, [key], 'queue_flow_busy');
    const places = Math.min(rateLeft, parallelism - (busy.rows[0]?.running ?? 0));
    return { places, inMs: undefined, periodMs };
  }
}
