import { tableOf } from './statements.js';

/** Keys of one step of a walk over all of them. */
export const KEYS_STEP = 2_000;
/** Keys of one step of a list, and what it counts of each: attempts, and messages that wait. */
export const LISTED = 100;
export const COUNTED_FIRST = 250;
/** Attempts of all keys that a statement looks at for one key's, and messages that wait under one: 0.1 s each. */
export const ATTEMPTS_STEP = 20_000;
export const COUNTED = 100_000;

/** The SQL of flow control. */
export function flowStatements(schema: string) {
  const messages = tableOf(schema, 'messages');
  const controls = tableOf(schema, 'flow_controls');
  const running = tableOf(schema, 'flow_running');
  const periodEnd = `period_start + period * interval '1 second'`;
  const isRunning = `m.state = 'ACTIVE' and m.finished_at is null and m.lease_until > now()`;
  const isAdmitted = 'm.finished_at is null and m.held is null and r.claims = m.claims + 1';
  const busy = `select count(*)::int from ${running} r join ${messages} m on m.id = r.message_id
    where ((r.claims = m.claims and ${isRunning}) or (${isAdmitted})) and r.key =`;
  const differs = `(not c.pinned_parallelism and c.parallelism is distinct from $2::int)
    or (not c.pinned_rate and (c.rate, c.period) is distinct from ($3::int, $4::int))`;
  const limits = `parallelism = case when c.pinned_parallelism then c.parallelism else $2::int end,
    rate = case when c.pinned_rate then c.rate else $3::int end,
    period = case when c.pinned_rate then c.period else $4::int end`;
  const create = `insert into ${controls} as c (key, parallelism, rate, period) values ($1, $2::int, $3::int, $4::int)
    on conflict (key)`;
  return {
    /**
     * For a publish, which waits for nobody: who lets messages go at this moment has the row, and then the limits are set
     * by `adopt`. Writes nothing when nothing is new: most messages say the same as the one before. The key stays until the
     * message is there: only its removal waits for a publish, or is waited for.
     */
    remember: `with kept as materialized (select key from ${controls} where key = $1 for key share), free as (
        select key from ${controls} c where key = $1 and (${differs}) for no key update skip locked
      ), changed as (update ${controls} c set ${limits} from free where c.key = free.key)
      insert into ${controls} (key, parallelism, rate, period)
      select $1, $2::int, $3::int, $4::int where not exists (select from kept) on conflict (key) do nothing`,

    /** The same under the key's lock, or where that is to be waited for */
    adopt: `${create} do update set ${limits} where ${differs}`,

    lock: `select parallelism, rate, period, paused, rate_count,
        (extract(epoch from ${periodEnd} - now()) * 1000)::float8 as period_left_ms
      from ${controls} where key = $1 for no key update`,

    /** Of those under way, `unclaimed` were let in and have not begun */
    busy: `select (${busy} $1) as running,
      (select count(*)::int from ${running} r join ${messages} m on m.id = r.message_id where ${isAdmitted} and r.key = $1) as unclaimed`,

    /** $1 id, $2 attempt */
    hold: `update ${messages} set held = 'flow', sweep_at = 'infinity'
      where id = $1 and attempt = $2 and finished_at is null and held is null and state <> 'FAILING'
        and (lease_until is null or lease_until < now())`,

    /**
     * $1 key, $2 how many, $3 grace in ms, $4 those of the present period that did not begin after all. The first ones by
     * their order are let in: their next claim counts as under way from now on.
     */
    release: `with next as (
        select id, claims, seq from ${messages} where flow_key = $1 and finished_at is null and held = 'flow'
        order by seq limit $2 for update skip locked
      ), admitted as (
        insert into ${running} (key, message_id, claims) select $1, id, claims + 1 from next
        on conflict (message_id) do update set key = excluded.key, claims = excluded.claims
      ), counted as (
        update ${controls} set
          rate_count = (select count(*) from next)
            + case when ${periodEnd} <= now() then 0 else greatest(0, rate_count - $4::int) end,
          period_start = case when ${periodEnd} <= now() then now() else period_start end
        where key = $1 and (exists (select from next) or $4::int > 0)
      ), gone as (
        update ${messages} m set held = null, sweep_at = now() + $3::float8 * interval '1 millisecond'
        from next where m.id = next.id returning m.id, m.attempt, next.seq
      )
      select id, attempt from gone order by seq`,

    /**
     * Of the keys behind $1 in their order, at most `KEYS_STEP`: those under which one could go now (of thousands that wait
     * for their rate each would cost a transaction), and the last that was looked at.
     */
    waiting: `with step as materialized (
        select * from ${controls} where key > $1 order by key limit ${KEYS_STEP}
      )
      select (select count(*)::int from step) as looked, (select max(key) from step) as last, array(
        select key from step c where not paused
          and (rate is null or rate_count < rate or ${periodEnd} <= now())
          and (parallelism is null or (${busy} c.key) < parallelism)
          and exists (select from ${messages} where flow_key = c.key and finished_at is null and held = 'flow')
      ) as keys`,

    /**
     * $1 a key or null, $2 a part of it or null, $3 the name behind which the step begins. Counts no more than
     * `COUNTED_FIRST` of each; `counted` attempts were looked at, `last` is the place of the last message that was counted.
     */
    list: `select key, parallelism, rate, period, paused, pinned_parallelism as "pinnedParallelism",
        pinned_rate as "pinnedRate", floor(extract(epoch from period_start))::float8 as "periodStart",
        case when ${periodEnd} > now() then rate_count else 0 end as "rateCount",
        attempts.running, attempts.counted, held.waiting, held.last
      from ${controls} c, lateral (
        select count(*)::int as counted, count(m.id)::int as running from (
          select message_id, claims from ${running} where key = c.key limit ${COUNTED_FIRST}
        ) r left join ${messages} m on m.id = r.message_id and ((r.claims = m.claims and ${isRunning}) or (${isAdmitted}))
      ) attempts, lateral (
        select count(*)::int as waiting, max(seq)::text as last from (
          select seq from ${messages} where flow_key = c.key and finished_at is null and held = 'flow'
          order by seq limit ${COUNTED_FIRST}
        ) first
      ) held
      where ($1::text is null or key = $1) and ($2::text is null or strpos(key, $2) > 0) and key > $3
      order by key limit ${LISTED}`,

    /** $1 a key, $2 the message behind which the step begins */
    countRunning: `with step as materialized (
        select key, message_id, claims from ${running} where message_id > $2 order by message_id limit ${ATTEMPTS_STEP}
      )
      select count(*)::int as looked, max(r.message_id) as last, count(m.id)::int as count from step r
      left join ${messages} m on r.key = $1 and m.id = r.message_id
        and ((r.claims = m.claims and ${isRunning}) or (${isAdmitted}))`,

    /** $1 a key, $2 the place behind which the step begins */
    countWaiting: `select count(*)::int as count, count(*)::int as looked, max(seq)::text as last from (
        select seq from ${messages} where flow_key = $1 and finished_at is null and held = 'flow' and seq > $2::bigint
        order by seq limit ${COUNTED}
      ) step`,

    pause: `update ${controls} set paused = $2 where key = $1`,

    /** $1 key, $2 parallelism, $3 rate, $4 period; null leaves one as it is. The key is made when it is new */
    pin: `insert into ${controls} as c (key, parallelism, rate, period, pinned_parallelism, pinned_rate)
      values ($1, $2::int, $3::int, coalesce($4::int, 1), $2::int is not null, $3::int is not null)
      on conflict (key) do update set
        parallelism = coalesce($2::int, c.parallelism), pinned_parallelism = c.pinned_parallelism or $2::int is not null,
        rate = coalesce($3::int, c.rate), pinned_rate = c.pinned_rate or $3::int is not null,
        period = coalesce($4::int, c.period),
        rate_count = case when $3::int is null then c.rate_count else 0 end,
        period_start = case when $3::int is null then c.period_start else now() end`,

    unpin: `update ${controls} set pinned_parallelism = pinned_parallelism and not $2,
        pinned_rate = pinned_rate and not $3 where key = $1`,

    resetRate: `update ${controls} set rate_count = 0, period_start = now() where key = $1`,
  } as const;
}
