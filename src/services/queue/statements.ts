import { quoteIdentifier } from '../../lib/postgres.js';

/** Milliseconds `parameter` from now. */
const fromNow = (parameter: string) => `now() + ${parameter} * interval '1 millisecond'`;

/** RabbitMQ's clock and Postgres' may run apart by this much, in ms, before a token counts as early. */
const EARLY_MS = 50;

/** The SQL of the queue, one function's worth a field. Times are Postgres' own, so gateways' clocks need not agree. */
export function queueStatements(schema: string) {
  const messages = `${quoteIdentifier(schema)}.messages`;
  const deadLetters = `${quoteIdentifier(schema)}.dead_letters`;
  const held = 'id = $1 and claims = $2 and finished_at is null';
  const free = '(lease_until is null or lease_until < now())';
  return {
    /** $13 delay, $14 grace, both in ms */
    insert: `insert into ${messages} (id, state, prefix, url, method, headers, body, max_retries, timeout_ms, not_before,
        created_at, callback, failure_callback, due_at, sweep_at)
      values ($1, 'CREATED', $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
        ${fromNow('$13::float8')}, ${fromNow('($13::float8 + $14::float8)')})`,

    /** Those of the messages whose attempt is due and which nobody works on; takes them for $3 ms */
    claim: `update ${messages} m set state = 'ACTIVE', claims = claims + 1, lease_until = ${fromNow('$3::float8')}
      from (
        select id from ${messages} join unnest($1::text[], $2::int[]) as token (id, attempt) using (id, attempt)
        where finished_at is null and ${free} and due_at <= ${fromNow(String(EARLY_MS))}
        for update of messages skip locked
      ) due
      where m.id = due.id
      returning m.id, prefix, url, method, headers, body, max_retries, timeout_ms, not_before, created_at, callback,
        failure_callback, attempt, claims`,

    /** Why it was not claimed; the wait is until its lease or due time, whichever is later */
    standing: `select attempt, finished_at is not null as finished,
        greatest(0, extract(epoch from greatest(lease_until, due_at) - now()) * 1000)::float8 as wait_ms
      from ${messages} where id = $1`,

    /** Not those that were given back in the same moment, which have no lease */
    renew: `update ${messages} m set lease_until = ${fromNow('$3::float8')}
      from (
        select id from ${messages} join unnest($1::text[], $2::int[]) as held (id, claims) using (id, claims)
        where state = 'ACTIVE' and lease_until is not null for update of messages skip locked
      ) held
      where m.id = held.id`,

    release: `update ${messages} set lease_until = null where ${held}`,

    /** $3 delay, $4 grace, both in ms. No attempt was made, so the claim is not counted among those that ended without an outcome */
    postpone: `update ${messages} set lease_until = null, claims = claims - 1,
        due_at = ${fromNow('$3::float8')}, sweep_at = ${fromNow('($3::float8 + $4::float8)')}
      where ${held}`,

    /** Rows are locked in one order, so two of these never wait for each other */
    deliver: `update ${messages} m set state = 'DELIVERED', lease_until = null, finished_at = now()
      from (
        select id from ${messages} join unnest($1::text[], $2::int[]) as held (id, claims) using (id, claims)
        where finished_at is null order by id for update of messages
      ) held
      where m.id = held.id returning m.id`,

    /** $3 delay, $4 grace, both in ms */
    retry: `update ${messages} set state = 'RETRY', attempt = attempt + 1, lease_until = null, sweeps = 0,
        due_at = ${fromNow('$3::float8')}, sweep_at = ${fromNow('($3::float8 + $4::float8)')}
      where ${held}`,

    fail: `update ${messages} set state = 'FAILED', lease_until = null, finished_at = now() where ${held}`,

    bury: `insert into ${deadLetters} (id, message_id, error, response_status, response_headers, response_body)
      values ($1, $2, $3, $4, $5, $6)`,

    /** Only while nobody began to deliver */
    cancel: `update ${messages} set state = 'CANCELED', finished_at = now()
      where id = any($1::text[]) and claims = 0 and finished_at is null returning id`,

    sweepLock: `select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as taken`,

    /** Messages that should have been claimed by now, at most $2; looks again after $1 ms, doubled each time */
    sweep: `update ${messages} m set sweeps = sweeps + 1,
        sweep_at = now() + least($1::float8 * 2 ^ least(sweeps, 10), 3600000) * interval '1 millisecond'
      from (
        select id from ${messages} where finished_at is null and sweep_at < now() and ${free}
        order by sweep_at limit $2 for update skip locked
      ) lost
      where m.id = lost.id returning m.id, m.attempt`,

    /** $1 ms for delivered and cancelled ones, $2 ms for dead ones, at most $3 */
    purge: `delete from ${messages} where id in (
        select id from ${messages}
        where finished_at < now() - least($1::float8, $2::float8) * interval '1 millisecond'
          and finished_at < now() - (case state when 'FAILED' then $2::float8 else $1::float8 end) * interval '1 millisecond'
        limit $3
      )`,
  } as const;
}
