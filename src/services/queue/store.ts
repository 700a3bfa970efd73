import type { Database, Queryable } from '../../lib/postgres.js';
import { responseOf } from './callbacks.js';
import type { AttemptResult, Decision } from './decide.js';
import type { CallbackTarget, ClaimedMessage, HeaderMap, Message, NewMessage, Token } from './message.js';
import { queueStatements } from './statements.js';

interface MessageRow {
  id: string;
  prefix: Message['prefix'];
  url: string;
  method: Message['method'];
  headers: HeaderMap;
  body: Buffer;
  max_retries: number;
  timeout_ms: number | null;
  /** bigint: text */
  not_before: string;
  created_at: string;
  callback: CallbackTarget | null;
  failure_callback: CallbackTarget | null;
  attempt: number;
  claims: number;
}

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

/** The memory of the queue: messages, who works on them, what became of them. */
export class MessageStore {
  private readonly sql: ReturnType<typeof queueStatements>;

  /** @param graceMs after its due time a message without a claim counts as lost by RabbitMQ */
  constructor(
    private readonly database: Database,
    private readonly schema: string,
    private readonly leaseMs: number,
    private readonly graceMs: number,
  ) {
    this.sql = queueStatements(schema);
  }

  async insert(message: NewMessage): Promise<void> {
    await this.insertWith(this.database, message);
  }

  async claim({ id, attempt }: Token): Promise<Claim> {
    const claimed = await this.run<MessageRow>(this.database, 'claim', [id, attempt, this.leaseMs]);
    const [row] = claimed.rows;
    if (row !== undefined) return { kind: 'claimed', message: messageOf(row) };
    const standing = await this.run<{ attempt: number; finished: boolean; wait_ms: number }>(
      this.database,
      'standing',
      [id],
    );
    const [now] = standing.rows;
    if (now === undefined || now.finished) return { kind: 'over' };
    if (now.attempt !== attempt) return { kind: 'stale', attempt: now.attempt, waitMs: now.wait_ms };
    return { kind: 'busy', waitMs: now.wait_ms };
  }

  async renew(held: readonly ClaimedMessage[]): Promise<void> {
    const ids = held.map(({ id }) => id);
    await this.run(this.database, 'renew', [ids, held.map(({ claims }) => claims), this.leaseMs]);
  }

  /** Gives a claim back without an outcome. */
  async release({ id, claims }: ClaimedMessage): Promise<void> {
    await this.run(this.database, 'release', [id, claims]);
  }

  /**
   * Writes an outcome, all of it or nothing.
   * @returns false when somebody else has claimed the message meanwhile: then nothing was written
   */
  async conclude(conclusion: Conclusion): Promise<boolean> {
    const { decision, callbacks } = conclusion;
    if (callbacks.length === 0 && decision.kind !== 'dead') return this.writeState(this.database, conclusion);
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
        `portico sweep ${this.schema}`,
      ]);
      if (lock.rows[0]?.taken !== true) return [];
      const lost = await this.run<Token>(connection, 'sweep', [this.graceMs, limit]);
      return lost.rows.map(({ id, attempt }) => ({ id, attempt }));
    });
  }

  /** Removes messages that ended long enough ago. @returns how many */
  async purge(ages: { deliveredMs: number; deadMs: number }, limit: number): Promise<number> {
    return (await this.run(this.database, 'purge', [ages.deliveredMs, ages.deadMs, limit])).rowCount;
  }

  private async writeState(connection: Queryable, { message, decision }: Conclusion): Promise<boolean> {
    const { id, claims } = message;
    const written =
      decision.kind === 'retry'
        ? await this.run(connection, 'retry', [id, claims, decision.delayMs, this.graceMs])
        : await this.run(connection, decision.kind === 'delivered' ? 'deliver' : 'fail', [id, claims]);
    return written.rowCount > 0;
  }

  private async bury(connection: Queryable, { message, result }: Conclusion, dlqId: string): Promise<void> {
    const { status, headers, body } = responseOf(result);
    const error = result.kind === 'failure' ? result.reason : null;
    await this.run(connection, 'bury', [dlqId, message.id, error, status, JSON.stringify(headers), body]);
  }

  private insertWith(connection: Queryable, message: NewMessage) {
    const { id, prefix, url, method, headers, body, maxRetries, timeoutMs } = message;
    const { notBefore, createdAt, callback, failureCallback, delayMs } = message;
    return this.run(connection, 'insert', [
      ...[
        id,
        prefix,
        url,
        method,
        JSON.stringify(headers),
        body,
        maxRetries,
        timeoutMs,
        notBefore,
        createdAt,
      ],
      ...[jsonOrNull(callback), jsonOrNull(failureCallback), delayMs, this.graceMs],
    ]);
  }

  private run<Row>(
    connection: Queryable,
    statement: keyof ReturnType<typeof queueStatements>,
    values: unknown[],
  ) {
    return connection.query<Row>(this.sql[statement], values, `queue_${statement}`);
  }
}

function jsonOrNull(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

function messageOf(row: MessageRow): ClaimedMessage {
  return {
    id: row.id,
    prefix: row.prefix,
    url: row.url,
    method: row.method,
    headers: row.headers,
    body: row.body,
    maxRetries: row.max_retries,
    timeoutMs: row.timeout_ms,
    notBefore: Number(row.not_before),
    createdAt: Number(row.created_at),
    callback: row.callback,
    failureCallback: row.failure_callback,
    attempt: row.attempt,
    claims: row.claims,
  };
}
