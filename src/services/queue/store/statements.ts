import { quoteIdentifier } from '../../../lib/postgres/postgres.js';
import { MESSAGE_COLUMNS, NEW_MESSAGE_RECORD } from './message-row.js';

/** Milliseconds `parameter` from now. */
export const fromNow = (parameter: string) => `now() + ${parameter} * interval '1 millisecond'`;

/** RabbitMQ's clock and Postgres' may run apart by this much, in ms, before a ticket counts as early. */
const EARLY_MS = 50;

/** The table `name` of a schema, as it stands in SQL. */
export const tableOf = (schema: string, name: string) => `${quoteIdentifier(schema)}.${name}`;

/** Where the columns come from by which a message knows its run. */
const OWN_RUN = { no: 'n.run_no', seq: 'n.run_seq', bytes: 'n.run_bytes' };

/**
 * Stores what `source` (records of new messages) holds. `bodies` and `grace` (ms) are parameters. Messages of ordered
 * queues wait for their turn, those with a flow-control key that are due for room under it.
 */
export function insertedMessages(
  schema: string,
  source: string,
  bodies: string,
  grace: string,
  run = OWN_RUN,
): string {
  const held = `case when n.queue_name is not null and n.callback_of is null then 'order'
      when n.details -> 'flow' is not null and n.delay_ms = 0 then 'flow' end`;
  return `insert into ${tableOf(schema, 'messages')} (id, state, prefix, url, method, headers, body, max_retries, timeout_ms,
      not_before, created_at, callback, failure_callback, queue_name, flow_key, caller_ip, callback_of, details, held,
      due_at, sweep_at, run_no, run_seq, run_role, run_bytes)
    select n.id, 'CREATED', n.prefix, n.url, n.method, n.headers,
      substring(${bodies}::bytea from n.body_at for n.body_size), n.max_retries, n.timeout_ms,
      n.not_before, n.created_at, n.callback, n.failure_callback, n.queue_name, n.details -> 'flow' ->> 'key',
      n.caller_ip, n.callback_of, n.details, n.held, ${fromNow('n.delay_ms')},
      case when n.held is null then ${fromNow(`(n.delay_ms + ${grace})`)} else 'infinity' end,
      ${run.no}, ${run.seq}, n.run_role, ${run.bytes}
    from (select n.*, ${held} as held from ${source} n) n
    returning id, due_at`;
}

/**
 * Joins what `select` finds for each row, in their order. Joined as tables, Postgres reads an index of all unfinished messages
 * instead where it believes that there are few: with those that were finished since its last vacuum that were 10,000 entries,
 * and 2 ms, for 16 messages (auto_explain under `npm run bench -- queue-workflow`).
 */
export const oneByOne = (select: string) => `cross join lateral (${select}) found`;

/** A history of so many bytes as a body comes with the claim, in Postgres' memory and this process'. */
export const TOLD_WITH_CLAIM = 32 * 1024;

/** The body of a message that takes its steps to a workflow, as `stepsBody` makes that of a longer history. */
const toldSteps = (
  schema: string,
) => `case when m.run_role = 'step' and m.run_bytes between 1 and ${TOLD_WITH_CLAIM} then (
    select '[' || string_agg('{"messageId":"' || s.message_id || '","body":"'
      || replace(encode(s.body, 'base64'), e'\\n', '') || '","callType":"step"}', ',' order by s.seq) || ']'
    from ${tableOf(schema, 'workflow_steps')} s
    where s.run_no = m.run_no and s.seq <= m.run_seq and s.kind in ('init', 'result', 'plan')
  ) end`;

/**
 * Of messages that are neither finished nor about to have a dead letter. Not by `finished_at`: where that is asked for, an index
 * of the unfinished by something else than their ids may be read, whole, for each.
 */
export const MAY_GO_ON = `state in ('CREATED', 'ACTIVE', 'RETRY')`;

/** The SQL of a message's life. Times are Postgres' own, so gateways' clocks need not agree. */
export function queueStatements(schema: string) {
  const messages = tableOf(schema, 'messages');
  const deduplication = tableOf(schema, 'deduplication');
  const events = tableOf(schema, 'events');
  const held = 'id = $1 and claims = $2 and finished_at is null';
  const free = '(lease_until is null or lease_until < now())';
  const claimable = `${MAY_GO_ON} and held is null and ${free}
    and due_at <= ${fromNow(String(EARLY_MS))}`;
  const isPaused = inPausedQueue(schema);
  // under a flow-control key the claim that follows must have been let in
  const isAdmitted = `(flow_key is null or exists (
    select from ${tableOf(schema, 'flow_running')} r where r.message_id = id and r.claims = ${messages}.claims + 1))`;
  const claim = `with taken as (
      update ${messages} m set state = 'ACTIVE', claims = claims + 1, lease_until = ${fromNow('$3::float8')}
      from (
        select found.id, place from unnest($1::text[], $2::int[]) with ordinality as ticket (id, attempt, place)
        ${oneByOne(`select id from ${messages} where id = ticket.id and attempt = ticket.attempt
          and ${claimable} and ${isAdmitted} and not ${isPaused} for update skip locked`)}
      ) due
      where m.id = due.id
      returning ${MESSAGE_COLUMNS}, due.place, ${toldSteps(schema)} as told
    ), log as (insert into ${events} (message_id, state) select id, 'ACTIVE' from taken order by place)
    select * from taken`;
  return {
    /** $1 JSON array of new messages, $2 their bodies, $3 grace in ms */
    insert: `with n as (select * from json_to_recordset($1::json) as r (${NEW_MESSAGE_RECORD})),
      stored as (${insertedMessages(schema, 'n', '$2', '$3::float8')})
      insert into ${events} (message_id, state, next_at) select id, 'CREATED', due_at from stored`,

    /** $1 key, $2 message id, $3 ms that the key holds. Answers whose key it is; a second user marks it as shared */
    deduplicate: `insert into ${deduplication} as d (key, message_id, expires_at) values ($1, $2, ${fromNow('$3::float8')})
      on conflict (key) do update set
        message_id = case when d.expires_at < now() then excluded.message_id else d.message_id end,
        shared = d.expires_at >= now(),
        expires_at = case when d.expires_at < now() then excluded.expires_at else d.expires_at end
      returning message_id`,

    /** Those of the messages whose attempt is due and which nobody works on; takes them for $3 ms */
    claim,

    /** Why it was not claimed; the wait is until its lease or due time, whichever is later */
    unclaimed: `select attempt, finished_at is not null as finished, state = 'FAILING' as failing,
        held is not null as held, flow_key, ${free} as free,
        greatest(0, extract(epoch from greatest(lease_until, due_at) - now()) * 1000)::float8 as wait_ms
      from ${messages} where id = $1`,

    /** Not those that were given back in the same moment, which have no lease */
    renew: `update ${messages} m set lease_until = ${fromNow('$3::float8')}
      from (
        select found.id from unnest($1::text[], $2::int[]) as held (id, claims)
        ${oneByOne(`select id from ${messages} where id = held.id and claims = held.claims
          and state = 'ACTIVE' and lease_until is not null for update skip locked`)}
      ) held
      where m.id = held.id`,

    release: `update ${messages} set lease_until = null where ${held}`,

    /**
     * $1 ids, $2 claims, $3 delays, $4 grace, both in ms. No attempt was made, so the claim is not counted among those that
     * ended without an outcome, and the attempt stays due when it was. In a paused queue it waits until that is resumed.
     */
    postpone: `with done as (
        update ${messages} m set lease_until = null, claims = m.claims - 1,
          held = case when ${isPaused} then 'order' end,
          sweep_at = case when ${isPaused} then 'infinity' else ${fromNow('(p.delay_ms + $4::float8)')} end
        from (
          select found.id, away.delay_ms
          from (select * from unnest($1::text[], $2::int[], $3::float8[]) as a (id, claims, delay_ms) order by id) away
          ${oneByOne(`select id from ${messages} where id = away.id and claims = away.claims and ${MAY_GO_ON} for update`)}
        ) p
        where m.id = p.id returning m.id, m.flow_key
      ), idle as (
        delete from ${tableOf(schema, 'flow_running')} where message_id in (select id from done where flow_key is not null)
      )
      select id from done`,

    ...outcomeStatements(schema),

    /** Refuses messages to their sender: all of them or, when one is being delivered or somebody else relies on it, none */
    refuse: `with locked as (select id, claims, finished_at from ${messages} where id = any($1::text[]) order by id for update),
      mine as (
        delete from ${deduplication} where message_id = any($1::text[]) and not shared
          and not exists (select from locked where claims > 0)
      )
      update ${messages} m set state = 'CANCELED', finished_at = now(), held = null from locked
      where m.id = locked.id and locked.finished_at is null
        and not exists (select from locked where claims > 0)
        and not exists (select from ${deduplication} where message_id = any($1::text[]) and shared)
      returning m.id, m.queue_name`,
  } as const;
}

/** An attempt of a message that is still to come waits until its queue is resumed; callbacks end what was begun. */
export const inPausedQueue = (schema: string) => `(queue_name is not null and callback_of is null
  and exists (select from ${tableOf(schema, 'queues')} q where q.name = queue_name and q.paused))`;

/** How attempts end, many in one statement. */
function outcomeStatements(schema: string) {
  const messages = tableOf(schema, 'messages');
  const events = tableOf(schema, 'events');
  const isPaused = `o.state = 'RETRY' and ${inPausedQueue(schema)}`;
  const record = `id text, claims int, state text, delay_ms float8, error text, status int, headers json, body text,
    log_headers json, log_body text`;
  return {
    /**
     * $1 JSON array of outcomes, $2 JSON array of callback messages with the id of their `source`, $3 grace in ms, $4 the
     * callbacks' bodies. Only the newest claim of an unfinished message may write; rows are locked in one order, so two
     * of these never wait for each other.
     */
    conclude: `with o as (select * from json_to_recordset($1::json) as r (${record})),
      mine as (
        select found.id from (select id, claims from o order by id) ended
        ${oneByOne(`select id from ${messages} where id = ended.id and claims = ended.claims
          and ${MAY_GO_ON} for update`)}
      ), done as (
        update ${messages} m set state = o.state, lease_until = null,
          finished_at = case when o.state = 'DELIVERED' then now() end,
          attempt = case when o.state = 'RETRY' then m.attempt + 1 else m.attempt end,
          sweeps = 0,
          due_at = case when o.state = 'RETRY' then ${fromNow('o.delay_ms')} else m.due_at end,
          held = case when ${isPaused} then 'order' end,
          sweep_at = case when o.state = 'DELIVERED' then m.sweep_at when ${isPaused} then 'infinity' else ${fromNow('(coalesce(o.delay_ms, 0) + $3::float8)')} end,
          failure_error = case when o.state = 'FAILING' then o.error end,
          failure_status = case when o.state = 'FAILING' then o.status end,
          failure_headers = case when o.state = 'FAILING' then o.headers end,
          failure_body = case when o.state = 'FAILING' then decode(o.body, 'base64') end
        from o join mine using (id) where m.id = o.id
        returning m.id, o.state, m.due_at, o.error, o.status, o.log_headers, coalesce(o.log_body, o.body) as log_body, m.flow_key
      ), idle as (
        delete from ${tableOf(schema, 'flow_running')} where message_id in (select id from done where flow_key is not null)
      ), errors as (
        insert into ${events} (message_id, state, error, response_status, response_headers, response_body, at)
        select id, 'ERROR', error, status, log_headers, decode(log_body, 'base64'), now() from done where state <> 'DELIVERED'
      ), log as (
        insert into ${events} (message_id, state, next_at, at)
        select id, state, case when state = 'RETRY' then due_at end, now() + interval '1 microsecond'
        from done where state <> 'FAILING'
      ), n as (
        select r.* from json_to_recordset($2::json) as r (${NEW_MESSAGE_RECORD}) join done on done.id = r.source
      ), called as (${insertedMessages(schema, 'n', '$4', '$3::float8')}
      ), created as (
        insert into ${events} (message_id, state, next_at) select id, 'CREATED', due_at from called
      )
      select id from done`,

    /** $1 id, $2 dead-letter id, $3 JSON array of the failure callback, $4 grace in ms, $5 its body. Nothing when the entry exists */
    deadLetter: `with dead as (
        update ${messages} set state = 'FAILED', finished_at = now(), lease_until = null, dead = true
        where id = $1 and state = 'FAILING' and finished_at is null
        returning id
      ), entry as (
        insert into ${tableOf(schema, 'dead_letters')} (id, message_id) select $2, id from dead
      ), log as (
        insert into ${events} (message_id, state) select id, 'FAILED' from dead
      ), n as (
        select r.* from json_to_recordset($3::json) as r (${NEW_MESSAGE_RECORD}) where exists (select from dead)
      ), called as (${insertedMessages(schema, 'n', '$5', '$4::float8')}
      ), created as (
        insert into ${events} (message_id, state, next_at) select id, 'CREATED', due_at from called
      )
      select id from dead`,

    /** The message whose dead letter is to be written, with the last response */
    failing: `select ${MESSAGE_COLUMNS}, m.failure_error, m.failure_status, m.failure_headers, m.failure_body
      from ${messages} m where id = $1 and state = 'FAILING' and finished_at is null`,
  };
}
