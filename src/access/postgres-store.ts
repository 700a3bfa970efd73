import { RateLimiterMemory, RateLimiterPostgres } from 'rate-limiter-flexible';
import type { AuditEntry } from '../http/audit.js';
import { keepTrying, type Progress } from '../lib/keep-trying.js';
import type { ReleaseRegistry } from '../lib/lifecycle.js';
import type { Logger } from '../lib/logger.js';
import { type Database, migrate, openDatabase, quoteIdentifier } from '../lib/postgres/postgres.js';
import { type AccessStore, type AuditPage, MOST_TIMER_S, type TokenSet } from './access-store.js';
import { accessMigrations } from './migrations.js';
import type { StoredToken } from './token.js';

const CONNECT_MS = 1_500;
const STATEMENT_MS = 1_300;
/** One looks for changes, the others count requests. */
const POOL_SIZE = 4;

export interface PostgresStoreOptions {
  readonly url: string;
  readonly schema: string;
  readonly log: Logger;
  readonly lifecycle: ReleaseRegistry;
}

/** Tokens, audit log and counts in one schema of Postgres. */
export class PostgresStore implements AccessStore {
  private readonly database: Database;
  private readonly schema: string;
  /** Quoted. */
  private readonly s: string;

  constructor({ url, schema, log, lifecycle }: PostgresStoreOptions) {
    this.schema = schema;
    this.s = quoteIdentifier(schema);
    this.database = openDatabase({
      url,
      poolSize: POOL_SIZE,
      statementTimeoutMs: STATEMENT_MS,
      connectTimeoutMs: CONNECT_MS,
      applicationName: 'portico access',
      onMissingTable: () => migrated.redo(),
      log,
      lifecycle,
    });
    const migrated: Progress = keepTrying(() => migrate(this.database, schema, accessMigrations(schema)), {
      name: 'access schema',
      log,
      lifecycle,
    });
  }

  async version(): Promise<string> {
    const { rows } = await this.database.query<{ version: string }>(
      `select version::text from ${this.s}.state`,
      [],
      'access version',
    );
    return versionOf(rows);
  }

  async load(): Promise<TokenSet> {
    // one statement, one moment
    const { rows } = await this.database.query<{ version: string; tokens: StoredToken[] }>(
      `select version::text, (select coalesce(jsonb_agg(jsonb_build_object('id', id, 'digest', digest, 'record', record) order by id), '[]') from ${this.s}.tokens) tokens from ${this.s}.state`,
    );
    return { version: versionOf(rows), tokens: rows[0]?.tokens ?? [] };
  }

  add({ id, digest, record }: StoredToken, most: number): Promise<boolean> {
    return this.database.transaction(async (connection) => {
      // the row's lock lets one change after the other through, so that none of them counts what another is adding
      await connection.query(`update ${this.s}.state set version = version + 1`);
      const { rowCount } = await connection.query(
        `insert into ${this.s}.tokens (id, digest, record) select $1, $2, $3 where (select count(*) from ${this.s}.tokens) < $4`,
        [id, digest, JSON.stringify(record), most],
      );
      return rowCount === 1;
    });
  }

  remove(id: string): Promise<boolean> {
    return this.database.transaction(async (connection) => {
      await connection.query(`update ${this.s}.state set version = version + 1`);
      const { rowCount } = await connection.query(`delete from ${this.s}.tokens where id = $1`, [id]);
      return rowCount === 1;
    });
  }

  async appendAudit(entries: readonly AuditEntry[]): Promise<void> {
    await this.database.query(
      `insert into ${this.s}.audit (entry) select entry from jsonb_array_elements($1::jsonb) entry`,
      [JSON.stringify(entries)],
    );
  }

  async audit(before: string | undefined, limit: number): Promise<AuditPage> {
    const { rows } = await this.database.query<{ id: string; entry: AuditEntry }>(
      `select a.id::text, entry from ${this.s}.audit a where $1::bigint is null or a.id < $1 order by a.id desc limit $2`,
      [before ?? null, limit + 1],
    );
    const page = rows.slice(0, limit);
    return {
      entries: page.map(({ entry }) => entry),
      cursor: rows.length > limit ? page.at(-1)?.id : undefined,
    };
  }

  async purge(retention: number): Promise<void> {
    await this.database.query(
      `delete from ${this.s}.audit where id in (select id from ${this.s}.audit where at < now() - make_interval(secs => $1) order by id limit 10000)`,
      [retention],
    );
    await this.database.query(`delete from ${this.s}.windows where expire < $1`, [Date.now()]);
  }

  limiter(points: number, seconds: number): RateLimiterPostgres {
    return new RateLimiterPostgres({
      storeClient: {
        query: (statement: { text: string; values: unknown[]; name?: string }) =>
          this.database.query(statement.text, statement.values, statement.name),
      },
      storeType: 'pool',
      schemaName: this.schema,
      tableName: 'windows',
      tableCreated: true,
      clearExpiredByTimeout: false,
      keyPrefix: '',
      points,
      duration: seconds,
      // who is over it asks Postgres no more
      inMemoryBlockOnConsumed: points,
      insuranceLimiter: new RateLimiterMemory({ points, duration: Math.min(seconds, MOST_TIMER_S) }),
    });
  }
}

/** The row is made with the table; without it nobody knows anything. */
function versionOf(rows: readonly { readonly version: string }[]): string {
  const version = rows[0]?.version;
  if (version === undefined) throw new Error('the table of the access state is empty');
  return version;
}
