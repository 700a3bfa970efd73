import type { Database, Queryable } from '../../lib/postgres.js';
import { Batcher } from './batcher.js';
import { responseOf } from './callbacks.js';
import type { AttemptResult, Decision } from './decide.js';
import type { ClaimedMessage, NewMessage, Token } from './message.js';
import { insertValues, type MessageRow, messageOf } from './message-row.js';
import { queueStatements } from './statements.js';

/** What became of a claim. */
export type Claim =
  | { readonly kind: 'claimed'; readonly message: ClaimedMessage }
  /** Another attempt of the message is due instead, after `waitMs`. */
  | { readonly kind: 'stale'; readonly attempt: number; readonly waitMs: number }
  /** The attempt is not due yet, or somebody works on it: worth asking again after `waitMs`. */
  | { readonly kind: 'busy'; readonly waitMs: number }
  /** Finished, cancelled or unknown. */
  | { readonly kind: 'over' };

/** An attempt's outcome with all that is written together with it. */
export interface Conclusion {
  readonly message: ClaimedMessage;
  readonly result: AttemptResult;
  readonly decision: Decision;
  /** Given when the message is dead. */
  readonly dlqId: string | undefined;
  readonly callbacks: readonly NewMessage[];
}

/** Two runs at once keep Postgres busy while Node decodes. */
const PARALLEL_BATCHES = 2;
const MAX_BATCH = 200;
/** Claimed messages come with their bodies: no statement brings more than about so many bytes. */
const CLAIM_BYTES = 16 * 1024 * 1024;

export interface StoreOptions {
  readonly database: Database;
  readonly schema: string;
  /** How long a claim holds unless renewed, in ms. */
  readonly leaseMs: number;
  /** How long after its due time a message without a claim counts as lost by RabbitMQ, in ms. */
  readonly graceMs: number;
  /** Largest body, in bytes. */
  readonly maxMessageSize: number;
}

/** The memory of the queue: messages, who works on them, what became of them. */
export class MessageStore {
  private readonly sql: ReturnType<typeof queueStatements>;
  private readonly database: Database;
  private readonly claims: Batcher<Token, ClaimedMessage | undefined>;
  private readonly deliveries: Batcher<ClaimedMessage, boolean>;

  constructor(private readonly options: StoreOptions) {
    this.sql = queueStatements(options.schema);
    this.database = options.database;
    this.claims = new Batcher({
      run: (tokens) => this.claimAll(tokens),
      size: Math.max(1, Math.min(MAX_BATCH, Math.floor(CLAIM_BYTES / options.maxMessageSize))),
      parallel: PARALLEL_BATCHES,
    });
    this.deliveries = new Batcher({
      run: (messages) => this.deliverAll(this.database, messages),
      size: MAX_BATCH,
      parallel: PARALLEL_BATCHES,
    });
  }

  async insert(message: NewMessage): Promise<void> {
    await this.insertWith(this.database, message);
  }

  async claim(token: Token): Promise<Claim> {
    const message = await this.claims.add(token);
    if (message !== undefined) return { kind: 'claimed', message };
    const standing = await this.run<{ attempt: number; finished: boolean; wait_ms: number }>(
      this.database,
      'standing',
      [token.id],
    );
    const [now] = standing.rows;
    if (now === undefined || now.finished) return { kind: 'over' };
    if (now.attempt !== token.attempt) return { kind: 'stale', attempt: now.attempt, waitMs: now.wait_ms };
    return { kind: 'busy', waitMs: now.wait_ms };
  }

  async renew(held: readonly ClaimedMessage[]): Promise<void> {
    const ids = held.map(({ id }) => id);
    await this.run(this.database, 'renew', [ids, held.map(({ claims }) => claims), this.options.leaseMs]);
  }

  /** Gives a claim back without an outcome. */
  async release({ id, claims }: ClaimedMessage): Promise<void> {
    await this.run(this.database, 'release', [id, claims]);
  }

  /** Gives a claim back as if it had not been made, for a new one after `delayMs`. @returns false when it was lost */
  async postpone({ id, claims }: ClaimedMessage, delayMs: number): Promise<boolean> {
    const values = [id, claims, delayMs, this.options.graceMs];
    return (await this.run(this.database, 'postpone', values)).rowCount > 0;
  }

  /**
   * Writes an outcome, all of it or nothing.
   * @returns false when somebody else has claimed the message meanwhile: then nothing was written
   */
  async conclude(conclusion: Conclusion): Promise<boolean> {
    const { decision, callbacks } = conclusion;
    if (callbacks.length === 0 && decision.kind === 'delivered')
      return this.deliveries.add(conclusion.message);
    if (callbacks.length === 0 && decision.kind === 'retry')
      return this.writeState(this.database, conclusion);
    return this.database.transaction(async (connection) => {
      if (!(await this.writeState(connection, conclusion))) return false;
      if (conclusion.dlqId !== undefined) await this.bury(connection, conclusion, conclusion.dlqId);
      for (const callback of callbacks) await this.insertWith(connection, callback);
      return true;
    });
  }

  /** Cancels messages whose delivery has not begun. @returns the ids of those that were cancelled */
  async cancel(ids: readonly string[]): Promise<string[]> {
    return (await this.run<{ id: string }>(this.database, 'cancel', [ids])).rows.map(({ id }) => id);
  }

  /** Tokens of at most `limit` messages that are overdue and in nobody's hands; none while another gateway sweeps. */
  async sweep(limit: number): Promise<Token[]> {
    return this.database.transaction(async (connection) => {
      const lock = await this.run<{ taken: boolean }>(connection, 'sweepLock', [
        `portico sweep ${this.options.schema}`,
      ]);
      if (lock.rows[0]?.taken !== true) return [];
      const lost = await this.run<Token>(connection, 'sweep', [this.options.graceMs, limit]);
      return lost.rows.map(({ id, attempt }) => ({ id, attempt }));
    });
  }

  /** Removes messages that ended long enough ago. @returns how many */
  async purge(ages: { deliveredMs: number; deadMs: number }, limit: number): Promise<number> {
    return (await this.run(this.database, 'purge', [ages.deliveredMs, ages.deadMs, limit])).rowCount;
  }

  private async claimAll(tokens: readonly Token[]): Promise<(ClaimedMessage | undefined)[]> {
    const ids = tokens.map(({ id }) => id);
    const attempts = tokens.map(({ attempt }) => attempt);
    const claimed = await this.run<MessageRow>(this.database, 'claim', [ids, attempts, this.options.leaseMs]);
    const rows = new Map(claimed.rows.map((row) => [row.id, row]));
    return tokens.map(({ id, attempt }) => {
      const row = rows.get(id);
      if (row?.attempt !== attempt) return undefined;
      // of two equal tokens only one has the claim
      rows.delete(id);
      return messageOf(row);
    });
  }

  private async deliverAll(connection: Queryable, messages: readonly ClaimedMessage[]): Promise<boolean[]> {
    const ids = messages.map(({ id }) => id);
    const claims = messages.map((message) => message.claims);
    const written = await this.run<{ id: string }>(connection, 'deliver', [ids, claims]);
    const delivered = new Set(written.rows.map(({ id }) => id));
    return ids.map((id) => delivered.has(id));
  }

  private async writeState(connection: Queryable, { message, decision }: Conclusion): Promise<boolean> {
    if (decision.kind === 'delivered') return (await this.deliverAll(connection, [message]))[0] === true;
    const { id, claims } = message;
    const written =
      decision.kind === 'retry'
        ? await this.run(connection, 'retry', [id, claims, decision.delayMs, this.options.graceMs])
        : await this.run(connection, 'fail', [id, claims]);
    return written.rowCount > 0;
  }

  private async bury(connection: Queryable, { message, result }: Conclusion, dlqId: string): Promise<void> {
    const { status, headers, body } = responseOf(result);
    const error = result.kind === 'failure' ? result.reason : null;
    await this.run(connection, 'bury', [dlqId, message.id, error, status, JSON.stringify(headers), body]);
  }

  private insertWith(connection: Queryable, message: NewMessage) {
    return this.run(connection, 'insert', [...insertValues(message), this.options.graceMs]);
  }

  private run<Row>(
    connection: Queryable,
    statement: keyof ReturnType<typeof queueStatements>,
    values: unknown[],
  ) {
    return connection.query<Row>(this.sql[statement], values, `queue_${statement}`);
  }
}
