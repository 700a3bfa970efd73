import type pg from 'pg';
import { cancelOnAbort, RequestOver } from './postgres-cancel.js';
import type { Queryable, QueryResult, Transactions } from './postgres-database.js';
import { isMissingTable, isReadOnly, isUnreachable, leavesConnectionUsable } from './postgres-errors.js';
import type { SilenceWatch } from './postgres-watch.js';

/** Values and answer of a statement that come to more, in bytes, take time by themselves. */
const LARGE_BYTES = 1024 * 1024;
/**
 * What a statement may take longer for each byte of large values or of a large answer, in ms: 0.25 s a MiB. Postgres writes
 * 15 MiB in 0.1 to 0.5 s, and took more than 1.3 s where six others wrote to the same disk; 8 MiB were read in as long.
 */
const MS_PER_BYTE = 250 / LARGE_BYTES;

/** An answer to a statement that Postgres has ended for its time comes so much later, in ms. */
export const REPLY_MS = 500;

interface Limits {
  /** How long a statement may run, in ms. */
  readonly statementMs: number;
  /** Longest wait for its answer, in ms; `undefined`: the pool's own. */
  readonly replyMs: number | undefined;
}

export interface ConnectionsOptions {
  readonly pool: pg.Pool;
  /** How long a statement may run that is not large, in ms: the connections' own setting. */
  readonly statementTimeoutMs: number;
  /** Makes a connection to the same server outside the pool, which may have none left. */
  readonly beside: (other: pg.ClientBase) => pg.Client;
  readonly watch: SilenceWatch;
  /** Told when a connection turned out to be lost, or to be to a server that cannot be written to. */
  readonly doubt: () => void;
  readonly onMissingTable?: () => void;
}

/** Lends the pool's connections. */
export class Connections {
  private readonly waiting = new Set<(error: Error) => void>();
  private readonly pool: pg.Pool;
  private readonly watch: SilenceWatch;

  constructor(private readonly options: ConnectionsOptions) {
    this.pool = options.pool;
    this.watch = options.watch;
  }

  /**
   * The pool for one request: when `signal` aborts, what waits gives up and what runs is cancelled in Postgres.
   * @param replyMs longest wait for the answer to a statement; default: the pool's own
   */
  within(signal?: AbortSignal, replyMs?: number): Transactions {
    const limits = { statementMs: this.options.statementTimeoutMs, replyMs };
    const transaction = <T>(work: (connection: Queryable) => Promise<T>) =>
      this.use((client) => inTransaction(client, work, signal, limits), signal, replyMs);
    return {
      // its limit is set for one transaction, which it then needs
      query: (text, values, name, reads) =>
        bytesOf(values, reads) > LARGE_BYTES
          ? transaction((connection) => connection.query(text, values, name, reads))
          : this.use((client) => run(client, replyMs, text, values, name), signal, replyMs),
      transaction,
    };
  }

  /** A refused statement gives the connection back; one that is lost or stalled is thrown away. */
  private async use<T>(
    work: (client: pg.PoolClient) => Promise<T>,
    signal: AbortSignal | undefined,
    replyMs: number | undefined,
  ): Promise<T> {
    const client = await this.acquire(signal);
    const cancelling = signal === undefined ? undefined : cancelOnAbort(client, signal, this.options.beside);
    let broken: Error | undefined;
    // a connection lost between two statements reports here and would otherwise end the process
    const onError = (error: Error) => {
      broken = error;
    };
    client.on('error', onError);
    // who says how long an answer may take waits for it
    if (replyMs === undefined) this.watch.lent(client);
    try {
      return await work(client);
    } catch (error) {
      // a server that was the primary, or an address behind which another one is now: a new connection may find it
      if (!leavesConnectionUsable(error) || isReadOnly(error)) broken ??= error as Error;
      if (isMissingTable(error)) this.options.onMissingTable?.();
      throw error;
    } finally {
      if (replyMs === undefined) this.watch.returned(client);
      if (broken !== undefined) this.options.doubt();
      // a cancellation may have met the rollback: nobody can tell in which state it left the connection
      if (await cancelling?.release()) broken ??= new Error('a statement was cancelled');
      client.off('error', onError);
      client.release(broken);
    }
  }

  end(): Promise<void> {
    return this.pool.end();
  }

  /** When the server cannot be reached, everybody who waits is told at once: in turn, each would wait for a time-out. */
  private acquire(signal?: AbortSignal): Promise<pg.PoolClient> {
    return new Promise((resolve, reject) => {
      let over = false;
      const onAbort = () => giveUp(new RequestOver());
      const settle = () => {
        this.waiting.delete(giveUp);
        signal?.removeEventListener('abort', onAbort);
      };
      const giveUp = (error: Error) => {
        over = true;
        settle();
        reject(error);
      };
      this.waiting.add(giveUp);
      if (signal?.aborted) onAbort();
      // an idle connection comes at once: listening would cost more than it can save
      else if (this.pool.idleCount === 0) signal?.addEventListener('abort', onAbort);
      this.pool.connect().then(
        (client) => {
          settle();
          if (over) client.release();
          else resolve(client);
        },
        (error: Error) => {
          giveUp(error);
          if (isUnreachable(error)) for (const other of this.waiting) other(error);
        },
      );
    });
  }
}

async function run<Row>(
  client: pg.ClientBase,
  replyMs: number | undefined,
  text: string,
  values?: readonly unknown[],
  name?: string,
): Promise<QueryResult<Row>> {
  const statement = {
    text,
    ...(values === undefined ? {} : { values: values as unknown[] }),
    ...(name === undefined ? {} : { name }),
    // node-postgres' types know it of connections only
    ...(replyMs === undefined ? {} : { query_timeout: replyMs }),
  };
  const result = await client.query(statement);
  return { rows: result.rows as Row[], rowCount: result.rowCount ?? 0 };
}

function bytesOf(values: readonly unknown[] = [], reads = 0): number {
  let bytes = reads;
  for (const value of values)
    if (typeof value === 'string' || value instanceof Uint8Array) bytes += value.length;
  return bytes;
}

/** @param limits of a transaction, whose large statements get the time for that; without, there are none */
function queryableOn(client: pg.ClientBase, signal: AbortSignal | undefined, limits?: Limits): Queryable {
  let allowedMs = limits?.statementMs ?? Number.POSITIVE_INFINITY;
  return {
    query: async (text, values, name, reads) => {
      if (signal?.aborted) throw new RequestOver();
      if (limits === undefined) return run(client, undefined, text, values, name);
      const { statementMs, replyMs } = limits;
      const bytes = bytesOf(values, reads);
      if (bytes <= LARGE_BYTES) return run(client, replyMs, text, values, name);
      const moreMs = Math.round(bytes * MS_PER_BYTE);
      if (statementMs + moreMs > allowedMs) {
        allowedMs = statementMs + moreMs;
        await run(client, replyMs, `set local statement_timeout = ${allowedMs}`);
      }
      return run(client, Math.max(replyMs ?? 0, allowedMs + REPLY_MS), text, values, name);
    },
  };
}

async function inTransaction<T>(
  client: pg.PoolClient,
  work: (connection: Queryable) => Promise<T>,
  signal: AbortSignal | undefined,
  limits: Limits,
): Promise<T> {
  try {
    const connection = queryableOn(client, signal, limits);
    await connection.query('begin');
    const result = await work(connection);
    await connection.query('commit');
    return result;
  } catch (error) {
    // a lost connection rolls back by itself, and waiting for a stalled one would double the wait
    if (leavesConnectionUsable(error)) await client.query('rollback');
    throw error;
  }
}

/** Runs `work` on a connection that is made for it and ended with it; `signal` cancels what runs. */
export async function withAside<T>(
  client: pg.Client,
  work: (connection: Queryable) => Promise<T>,
  signal: AbortSignal,
  beside: (other: pg.ClientBase) => pg.Client,
): Promise<T> {
  // a statement that is running when the connection breaks is rejected as well
  client.on('error', () => undefined);
  await client.connect();
  const cancelling = cancelOnAbort(client, signal, beside);
  try {
    return await work(queryableOn(client, signal));
  } finally {
    await cancelling.release();
    await client.end().catch(() => undefined);
  }
}
