import type { Queryable } from '../postgres/postgres-database.js';
import { claimed, type KeptCall, type KeptCalls, type KeptReply } from './kept-calls.js';

/** How often what is over is removed, in ms, and how much of it at once. */
const PURGE_MS = 60_000;
const PURGED = 1_000;

/** @param table quoted */
export function keptCallsTable(table: string): string {
  return `create table ${table} (
    id text primary key,
    fingerprint text not null,
    until bigint not null,
    reply jsonb,
    expires_at timestamptz not null)`;
}

interface Row {
  readonly fingerprint: string;
  readonly until: string;
  readonly reply: KeptReply | null;
}

/** Each call is a row. */
export class PostgresKeptCalls implements KeptCalls {
  private purgedAt = performance.now();

  constructor(
    private readonly database: Queryable,
    /** Quoted. */
    private readonly table: string,
  ) {}

  async claim(id: string, { fingerprint, until }: KeptCall, windowMs: number): Promise<KeptCall | undefined> {
    const { table } = this;
    const found = await claimed(
      async () => {
        const { rowCount } = await this.database.query(
          `insert into ${table} as t (id, fingerprint, until, expires_at) values ($1, $2, $3, now() + make_interval(secs => $4::float8 / 1000))
          on conflict (id) do update set fingerprint = excluded.fingerprint, until = excluded.until, expires_at = excluded.expires_at, reply = null
          where t.expires_at < now()`,
          [id, fingerprint, until, windowMs],
          'claim call',
        );
        return rowCount === 1;
      },
      () => this.find(id),
    );
    this.purgeNowAndThen();
    return found;
  }

  async finish(id: string, { reply }: KeptCall): Promise<void> {
    await this.database.query(
      `update ${this.table} set reply = $2 where id = $1`,
      [id, JSON.stringify(reply)],
      'finish call',
    );
  }

  async release(id: string): Promise<void> {
    await this.database.query(`delete from ${this.table} where id = $1`, [id], 'release call');
  }

  private async find(id: string): Promise<KeptCall | undefined> {
    const { rows } = await this.database.query<Row>(
      `select fingerprint, until::text, reply from ${this.table} where id = $1 and expires_at >= now()`,
      [id],
      'find call',
    );
    const [row] = rows;
    if (row === undefined) return undefined;
    const call = { fingerprint: row.fingerprint, until: Number(row.until) };
    return row.reply === null ? call : { ...call, reply: row.reply };
  }

  private purgeNowAndThen(): void {
    if (performance.now() - this.purgedAt < PURGE_MS) return;
    this.purgedAt = performance.now();
    const over = `select id from ${this.table} where expires_at < now() limit ${PURGED}`;
    // what is not removed now is removed later
    this.database.query(`delete from ${this.table} where id in (${over})`).catch(() => undefined);
  }
}
