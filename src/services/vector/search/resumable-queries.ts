import { HttpError } from '../../../http/errors.js';
import type { Queryable } from '../../../lib/postgres/postgres.js';
import { translated } from '../errors.js';
import type { IndexParts } from '../index-parts.js';
import type { VectorQuery } from '../schemas/queries.js';
import { checkTopK, type PreparedQuery, prepareQuery } from './prepared-query.js';
import type { Hit, Searcher } from './searcher.js';

interface StoredQuery {
  readonly query: VectorQuery;
  /** How many records it has given. */
  readonly seen: number;
  /** null where the namespace did not exist, or does not any more. */
  readonly namespace: string | null;
}

/** Of those that have ended so many go with each that begins: a step that stays small whatever was left. */
const EXPIRED_AT_ONCE = 1_000;

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Queries that go on where they ended. They live in Postgres, so they survive a restart and any gateway goes on with them. */
export class ResumableQueries {
  constructor(
    private readonly parts: IndexParts,
    private readonly searcher: Searcher,
  ) {}

  /**
   * @param maxIdle seconds without a request after which it ends
   * @throws HttpError 429 when as many as may are open
   */
  async start(
    namespace: string,
    query: VectorQuery,
    maxIdle: number,
    signal: AbortSignal,
  ): Promise<{ uuid: string; hits: readonly Hit[] }> {
    const prepared = withShortLists(prepareQuery(this.parts, query, 'body'), query.topK);
    return this.transaction(signal, async (connection) => {
      await this.dropExpired(connection);
      await this.demandRoom(connection);
      const { hits } = await this.searcher.search(connection, namespace, prepared);
      const { resumableQueries, namespaces, indexId } = this.parts.shape;
      // those that begin at the same time do not see each other: one after the other is counted again, and only for the insert
      await connection.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
        `${resumableQueries} ${indexId}`,
      ]);
      await this.demandRoom(connection);
      const inserted = await connection.query<{ uuid: string }>(
        `insert into ${resumableQueries} (index_id, namespace_id, query, seen, max_idle, expires_at, token)
         values (${indexId}, (select id from ${namespaces} where index_id = ${indexId} and name = $1::text),
           $2::jsonb, $3::bigint[], make_interval(secs => $4::float8), now() + make_interval(secs => $4::float8), $5::text)
         returning uuid`,
        [namespace, JSON.stringify(query), hits.map(({ row }) => row), maxIdle, this.parts.token],
      );
      return { uuid: (inserted.rows[0] as { uuid: string }).uuid, hits };
    });
  }

  /** The next records, none of which was there before. @throws HttpError 404 when it has ended */
  async next(uuid: string, additionalK: number, signal: AbortSignal): Promise<readonly Hit[]> {
    checkTopK(this.parts.settings, additionalK, 'body.additionalK');
    return this.transaction(signal, async (connection) => {
      const { query, seen, namespace } = await this.take(connection, uuid);
      if (namespace === null) return [];
      const prepared = withShortLists(prepareQuery(this.parts, query, 'body'), additionalK);
      const wanted = { topK: additionalK, without: { uuid, count: seen } };
      const { hits } = await this.searcher.search(connection, namespace, prepared, wanted);
      await connection.query(
        `update ${this.parts.shape.resumableQueries} set seen = seen || $2::bigint[], expires_at = now() + max_idle where uuid = $1::uuid`,
        [uuid, hits.map(({ row }) => row)],
      );
      return hits;
    });
  }

  /** @throws HttpError 404 when it has ended */
  async end(uuid: string, signal: AbortSignal): Promise<void> {
    await this.transaction(signal, async (connection) => {
      await this.take(connection, uuid);
      await connection.query(`delete from ${this.parts.shape.resumableQueries} where uuid = $1::uuid`, [
        uuid,
      ]);
    });
  }

  /** Calls at the same time on one query take turns. */
  private async take(connection: Queryable, uuid: string): Promise<StoredQuery> {
    if (!UUID.test(uuid)) throw ended();
    const { resumableQueries, namespaces, indexId } = this.parts.shape;
    const { rows } = await connection.query<StoredQuery>(
      `select q.query, cardinality(q.seen) as seen, n.name as namespace from ${resumableQueries} q
       left join ${namespaces} n on n.id = q.namespace_id
       where q.uuid = $1::uuid and q.index_id = ${indexId} and q.expires_at > now() for update of q`,
      [uuid],
    );
    const stored = rows[0];
    if (stored === undefined) throw ended();
    return stored;
  }

  private async dropExpired(connection: Queryable): Promise<void> {
    const { resumableQueries, indexId } = this.parts.shape;
    await connection.query(
      `delete from ${resumableQueries} where uuid in (
         select uuid from ${resumableQueries} where index_id = ${indexId} and expires_at <= now()
         limit ${EXPIRED_AT_ONCE} for update skip locked)`,
    );
  }

  /** @throws HttpError 429 */
  private async demandRoom(connection: Queryable): Promise<void> {
    const { shape, settings, token } = this.parts;
    const { rows } = await connection.query<{ all: string; own: string }>(
      `select count(*) as all, count(*) filter (where token = $1) as own from ${shape.resumableQueries}
       where index_id = ${shape.indexId} and expires_at > now()`,
      [token],
    );
    const limit = settings.maxResumableQueries;
    const share = shareOf(settings);
    if (Number(rows[0]?.all ?? 0) >= limit)
      throw tooMany(`${limit} resumable queries are open, as many as may be.`);
    if (Number(rows[0]?.own ?? 0) >= share)
      throw tooMany(`This token has ${share} resumable queries open, as many as it may.`);
  }

  private transaction<T>(signal: AbortSignal, work: (connection: Queryable) => Promise<T>): Promise<T> {
    return translated(() => this.parts.database.within(signal, 'scan').transaction(work));
  }
}

/** Both tokens of an index have their half: none can take the other's for as long as a query may stay open. */
function shareOf({ maxResumableQueries, token, readOnlyToken }: IndexParts['settings']): number {
  if (token === null || readOnlyToken === null) return maxResumableQueries;
  return Math.ceil(maxResumableQueries / 2);
}

function tooMany(message: string): HttpError {
  return new HttpError('too_many_requests', message, { retryAfter: 60 });
}

function ended(): HttpError {
  return new HttpError('not_found', 'There is no such resumable query: it has ended, or its time was over.');
}

/** Each part takes just so many from both lists of a hybrid query: what it leaves out belongs to the next part. */
function withShortLists(query: PreparedQuery, candidates: number): PreparedQuery {
  return { ...query, candidates };
}
