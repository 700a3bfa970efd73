import { HttpError } from '../../../http/errors.js';
import type { Database, Queryable, QueryResult } from '../../../lib/postgres/postgres.js';
import { tableOf } from './statements.js';

export interface Endpoint {
  readonly name?: string;
  readonly url: string;
}

export interface UrlGroup {
  readonly name: string;
  /** Unix time in ms. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Instructions for messages that bring none of their own, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly endpoints: readonly Endpoint[];
}

export interface GroupLimits {
  readonly maxTopics: number;
  readonly maxEndpointsPerTopic: number;
}

interface GroupRow {
  name: string;
  created_ms: number;
  updated_ms: number;
  headers: Record<string, string>;
  endpoints: { name: string | null; url: string }[];
}

/** Of a step of the list: groups, and bytes of their endpoints; a single group may have more. */
const PAGE_GROUPS = 20;
const PAGE_BYTES = 256 * 1024;

/** Names for several destinations at once. */
export class UrlGroups {
  private readonly sql: ReturnType<typeof statements>;

  constructor(
    private readonly database: Database,
    private readonly schema: string,
    private readonly limits: GroupLimits,
  ) {
    this.sql = statements(schema);
  }

  async find(name: string): Promise<UrlGroup | undefined> {
    const [row] = (await this.database.query<GroupRow>(this.sql.find, [name], 'queue_group')).rows;
    return row && groupOf(row);
  }

  /** All groups by their names, read a step at a time. */
  async *list(): AsyncGenerator<UrlGroup> {
    for (let after: string | undefined = ''; after !== undefined; ) {
      const { rows }: QueryResult<GroupRow> = await this.database.query<GroupRow>(this.sql.page, [after]);
      yield* rows.map(groupOf);
      after = rows.at(-1)?.name;
    }
  }

  /** Adds endpoints or changes those with the same name or URL; makes the group. @throws HttpError 412 over a limit */
  async add(name: string, endpoints: readonly Endpoint[]): Promise<void> {
    await this.locked(async (connection) => {
      await this.create(connection, name);
      for (const endpoint of endpoints) {
        const { url, name: endpointName = null } = endpoint;
        await connection.query(this.sql.replace, [name, url, endpointName]);
        await connection.query(this.sql.add, [name, url, endpointName]);
      }
      const count = await connection.query<{ count: number }>(this.sql.count, [name]);
      const { maxEndpointsPerTopic } = this.limits;
      if ((count.rows[0]?.count ?? 0) > maxEndpointsPerTopic)
        throw new HttpError(
          'limit_reached',
          `A URL group has at most ${maxEndpointsPerTopic} endpoints (maxEndpointsPerTopic).`,
        );
    });
  }

  /** Removes endpoints by name or URL, and the group with the last of them. @returns false when there is no such group */
  remove(name: string, endpoints: readonly { name?: string; url?: string }[]): Promise<boolean> {
    return this.locked(async (connection) => {
      const touched = await connection.query(this.sql.touch, [name]);
      if (touched.rowCount === 0) return false;
      for (const { url = null, name: endpointName = null } of endpoints)
        await connection.query(this.sql.remove, [name, url, endpointName]);
      const { rows } = await connection.query<{ count: number }>(this.sql.count, [name]);
      if (rows[0]?.count === 0) await connection.query(this.sql.delete, [name]);
      return true;
    });
  }

  /** Sets the instructions for messages that bring none; makes the group. @throws HttpError 412 over a limit */
  async setHeaders(name: string, headers: Readonly<Record<string, string>>): Promise<void> {
    await this.locked(async (connection) => {
      await this.create(connection, name);
      await connection.query(this.sql.setHeaders, [name, JSON.stringify(headers)]);
    });
  }

  async delete(name: string): Promise<void> {
    await this.database.query(this.sql.delete, [name]);
  }

  private async create(connection: Queryable, name: string): Promise<void> {
    if ((await connection.query(this.sql.touch, [name])).rowCount > 0) return;
    const { rows } = await connection.query<{ count: number }>(this.sql.groups);
    if ((rows[0]?.count ?? 0) >= this.limits.maxTopics)
      throw new HttpError(
        'limit_reached',
        `There are at most ${this.limits.maxTopics} URL groups (maxTopics).`,
      );
    await connection.query(this.sql.create, [name]);
  }

  /** One change at a time over all gateways: the limits are counted. */
  private locked<T>(work: (connection: Queryable) => Promise<T>): Promise<T> {
    return this.database.transaction(async (connection) => {
      await connection.query(this.sql.lock, [`portico queue groups ${this.schema}`]);
      return work(connection);
    });
  }
}

function groupOf({
  name,
  created_ms: createdAt,
  updated_ms: updatedAt,
  headers,
  endpoints,
}: GroupRow): UrlGroup {
  return {
    name,
    createdAt,
    updatedAt,
    headers,
    endpoints: endpoints.map(({ name: endpoint, url }) => ({
      ...(endpoint === null ? {} : { name: endpoint }),
      url,
    })),
  };
}

function statements(schema: string) {
  const groups = tableOf(schema, 'url_groups');
  const endpoints = tableOf(schema, 'endpoints');
  const columns = `name, headers, extract(epoch from created_at)::float8 * 1000 as created_ms,
        extract(epoch from updated_at)::float8 * 1000 as updated_ms,
        coalesce((select json_agg(json_build_object('name', e.name, 'url', e.url) order by position)
          from ${endpoints} e where group_name = g.name), '[]') as endpoints`;
  return {
    lock: 'select pg_advisory_xact_lock(hashtextextended($1, 0))',
    find: `select ${columns} from ${groups} g where name = $1`,
    /** $1 the name behind which it begins */
    page: `select ${columns}
      from (
        select *, sum(size) over (order by name) - size as bytes_before
        from (
          select *, (select coalesce(sum(octet_length(e.url) + coalesce(octet_length(e.name), 0)), 0)
            from ${endpoints} e where group_name = s.name) as size
          from ${groups} s where name > $1 order by name limit ${PAGE_GROUPS}
        ) step
      ) g
      where bytes_before <= ${PAGE_BYTES} order by name`,
    touch: `update ${groups} set updated_at = now() where name = $1`,
    groups: `select count(*)::int as count from ${groups}`,
    create: `insert into ${groups} (name) values ($1)`,
    /** An endpoint keeps its name when it gets another URL: the old one goes. */
    replace: `delete from ${endpoints} where group_name = $1 and name = $3 and url <> $2`,
    add: `insert into ${endpoints} as e (group_name, url, name) values ($1, $2, $3)
      on conflict (group_name, url) do update set name = coalesce(excluded.name, e.name)`,
    remove: `delete from ${endpoints} where group_name = $1 and (url = $2 or name = $3)`,
    count: `select count(*)::int as count from ${endpoints} where group_name = $1`,
    setHeaders: `update ${groups} set headers = $2 where name = $1`,
    delete: `delete from ${groups} where name = $1`,
  } as const;
}
