import { fromNow, inPausedQueue, tableOf } from './statements.js';

/** The SQL that finds what was lost. */
export function upkeepStatements(schema: string) {
  const messages = tableOf(schema, 'messages');
  const free = '(lease_until is null or lease_until < now())';
  // what has its turn in a paused queue is held instead, right after the sweep; a dead letter is written all the same
  const mayGo = `(state = 'FAILING' or not ${inPausedQueue(schema)})`;
  return {
    sweepLock: `select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as taken`,

    /**
     * Messages that should have been claimed by now, at most $2; looks again after $1 ms, doubled each time. $3 ms before
     * that, those too that nobody can be about to cancel because their sender was refused: retries, and what is old.
     */
    sweep: `update ${messages} m set sweeps = sweeps + 1,
        sweep_at = now() + least($1::float8 * 2 ^ least(sweeps, 10), 3600000) * interval '1 millisecond'
      from (
        select id from ${messages} where finished_at is null and ${free} and ${mayGo}
          and sweep_at < ${fromNow('$3::float8')} and (sweep_at < now() or (sweeps = 0
            and (attempt > 0 or created_at < (extract(epoch from now()) * 1000 - $1::float8))))
        order by sweep_at limit $2 for update skip locked
      ) lost
      where m.id = lost.id returning m.id, m.attempt, m.state = 'FAILING' as failing`,

    /**
     * Messages whose gateway died while their attempt waited, found among those that have been due longest, at most $2;
     * looks again after $1 ms. They were claimed before what waits now was due, so a bounded look finds them.
     */
    sweepExpired: `update ${messages} m set sweep_at = ${fromNow('$1::float8')}
      from (
        select id from ${messages} where lease_until < now() and finished_at is null and state = 'ACTIVE' and ${mayGo} and id in (
          select id from ${messages} where finished_at is null and sweep_at < now() order by sweep_at limit 10000
        ) limit $2 for update skip locked
      ) lost
      where m.id = lost.id returning m.id, m.attempt, false as failing`,
  } as const;
}
