import { randomBytes } from 'node:crypto';
import { HttpError } from '../../../http/errors.js';
import {
  type Database,
  lockSchema,
  type Queryable,
  quoteIdentifier,
} from '../../../lib/postgres/postgres.js';
import type { IndexSettings, ManagedIndex } from '../settings.js';
import { makeIndexTables } from '../tables/index-tables.js';

/** An index that an administrator has made, as its row says. */
export interface CatalogRow {
  readonly id: number;
  readonly name: string;
  readonly settings: Omit<ManagedIndex, 'name'>;
  readonly salt: string;
}

/** What all gateways know of the indexes made at run time. */
export interface Catalog {
  readonly rows: readonly CatalogRow[];
  /** Some were dropped whose tables are still there. */
  readonly leavings: boolean;
}

/** Dropped indexes keep their tables so long: by then every gateway has heard of it, whose requests would meet none. */
const GRACE = '3 seconds';

/** Waiting for a lock longer than this holds up everybody else who wants one on that table. */
const LOCK_TIMEOUT = '2s';

const newSalt = () => randomBytes(12).toString('hex');

/** The rows of indexes that were made at run time, in the schema of all indexes. */
export class IndexCatalog {
  private readonly s: string;

  constructor(
    private readonly database: Database,
    private readonly schema: string,
  ) {
    this.s = quoteIdentifier(schema);
  }

  async read(): Promise<Catalog> {
    const { rows } = await this.database.patient.query<CatalogRow & { dropped: boolean }>(
      `select id, name, settings, token_salt as salt, dropped_at is not null as dropped from ${this.s}.indexes
       where settings is not null order by name`,
    );
    const present = rows.filter(({ dropped }) => !dropped);
    return { rows: present, leavings: present.length < rows.length };
  }

  /** Records of every index by its name. */
  async counts(): Promise<ReadonlyMap<string, number>> {
    const { rows } = await this.database.query<{ name: string; count: string }>(
      `select i.name, coalesce(sum(n.record_count), 0) as count from ${this.s}.indexes i
       left join ${this.s}.namespaces n on n.index_id = i.id where i.dropped_at is null group by i.name`,
    );
    return new Map(rows.map(({ name, count }) => [name, Number(count)]));
  }

  /**
   * @param complete the same with what is the gateway's to say
   * @throws HttpError 409 when the name is taken, 422 when there are as many as there may be
   */
  async create(index: ManagedIndex, complete: IndexSettings, maxIndexes: number): Promise<void> {
    const { name, ...settings } = index;
    await this.database.transaction(async (connection) => {
      await lockSchema(connection, this.schema);
      const found = await connection.query<{ name: string; managed: boolean }>(
        `select name, settings is not null as managed from ${this.s}.indexes where dropped_at is null`,
      );
      if (found.rows.some((row) => row.name === name))
        throw new HttpError('conflict', `There is an index ${name} already.`);
      if (found.rows.filter(({ managed }) => managed).length >= maxIndexes)
        throw new HttpError('unprocessable', `There are ${maxIndexes} indexes, which is the limit.`);
      const id = await makeIndexTables(connection, this.schema, complete);
      await connection.query(`update ${this.s}.indexes set settings = $2, token_salt = $3 where id = $1`, [
        id,
        JSON.stringify(settings),
        newSalt(),
      ]);
    });
  }

  /** @param change what becomes of its settings @throws HttpError 404, and whatever `change` throws */
  async alter(
    name: string,
    change: (settings: CatalogRow['settings']) => CatalogRow['settings'],
    rotateTokens: boolean,
  ): Promise<void> {
    await this.database.transaction(async (connection) => {
      const { id, settings } = await this.locked(connection, name);
      await connection.query(
        `update ${this.s}.indexes set settings = $2, token_salt = coalesce($3, token_salt) where id = $1`,
        [id, JSON.stringify(change(settings)), rotateTokens ? newSalt() : null],
      );
    });
  }

  /** It is gone at once, and its name is free; its tables go later. @throws HttpError 404 */
  async drop(name: string): Promise<void> {
    await this.database.transaction(async (connection) => {
      const { id } = await this.locked(connection, name);
      // no name that may be given has a blank
      await connection.query(
        `update ${this.s}.indexes set dropped_at = now(), name = name || ' ' || id where id = $1`,
        [id],
      );
    });
  }

  private async locked(connection: Queryable, name: string): Promise<CatalogRow> {
    const { rows } = await connection.query<CatalogRow>(
      `select id, name, settings, token_salt as salt from ${this.s}.indexes
       where name = $1 and settings is not null and dropped_at is null for update`,
      [name],
    );
    const [row] = rows;
    if (row === undefined) throw noSuchIndex(name);
    return row;
  }

  /** Removes the tables of one dropped index. @returns whether there are further ones, now or soon */
  async purgeOne(connection: Queryable): Promise<boolean> {
    await connection.query('begin');
    try {
      await connection.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`);
      const { rows } = await connection.query<{ id: number; due: boolean }>(
        `select id, dropped_at < now() - interval '${GRACE}' as due from ${this.s}.indexes
         where dropped_at is not null order by dropped_at limit 1 for update skip locked`,
      );
      const [row] = rows;
      if (row?.due === true) await this.purge(connection, row.id);
      await connection.query('commit');
      return row !== undefined;
    } catch (error) {
      await connection.query('rollback');
      throw error;
    }
  }

  private async purge(connection: Queryable, id: number): Promise<void> {
    const { s } = this;
    for (const table of ['records', 'postings', 'repeated'])
      await connection.query(`drop table if exists ${s}.${table}_${id}`);
    for (const table of ['resumable_queries', 'dropped_namespaces', 'namespaces'])
      await connection.query(`delete from ${s}.${table} where index_id = $1`, [id]);
    await connection.query(`delete from ${s}.indexes where id = $1`, [id]);
  }
}

export function noSuchIndex(name: string): HttpError {
  return new HttpError('not_found', `There is no index ${name} that was made at run time.`);
}
