import { NEW_MESSAGE_RECORD } from '../store/message-row.js';
import { insertedMessages, oneByOne, tableOf } from '../store/statements.js';
import { ENTRY_BYTES } from './run-messages.js';

/** The record of a step: its message's, and where its body lies among those beside it. */
const STEP_RECORD = `${NEW_MESSAGE_RECORD}, kind text, step_id int, target_step int, concurrent int, name text, type text,
  step_at int, step_size int`;

const RUN_RECORD = `${NEW_MESSAGE_RECORD}, run_id text, created_ms bigint, labels json, flow_key text, settings json,
  awaits_sdk boolean, step_at int, step_size int`;

/** By its state, for the reason of `MAY_GO_ON`. */
export const UNDER_WAY = `state = 'RUN_STARTED'`;

/**
 * The common changes of runs, each for many of them in one statement: as transactions of several they cost the gateway twice
 * as much CPU. A run is locked by the statement itself, which then sees the row as it is, whoever has changed it meanwhile;
 * of other tables it sees what was committed before it began.
 */
export function runStatements(schema: string) {
  const table = (name: string) => tableOf(schema, name);
  const [runs, steps, events] = [table('workflow_runs'), table('workflow_steps'), table('events')];
  const created = `log as (
      insert into ${events} (message_id, state, next_at) select id, 'CREATED', due_at from stored
    )`;
  return {
    /** $1 JSON array of runs, each with its first message, $2 their payloads, $3 grace in ms */
    start: `with n as (select * from json_to_recordset($1::json) as r (${RUN_RECORD})),
      made as (
        insert into ${runs} (id, created_ms, url, state, labels, flow_key, caller_ip, settings, awaits_sdk, next_seq, steps_bytes)
        select run_id, created_ms, url, 'RUN_STARTED', array(select json_array_elements_text(labels)), flow_key, caller_ip,
          settings, awaits_sdk, 1, step_size
        from n where not exists (select from ${runs} r where r.id = n.run_id and r.created_ms >= n.created_ms)
        order by run_id
        on conflict do nothing returning no, id
      ), begun as (select n.*, made.no from made join n on n.run_id = made.id),
      step as (
        insert into ${steps} (run_no, seq, message_id, kind, step_id, concurrent, name, type, body)
        select no, 0, id, 'init', 0, 1, 'init', 'Initial', substring($2::bytea from step_at for step_size) from begun
      ), stored as (
        ${insertedMessages(schema, 'begun', '$2', '$3::float8', { no: 'n.no', seq: '0', bytes: 'n.run_bytes' })}
      ), ${created}
      select no, run_id from begun`,

    /**
     * $1 JSON array of steps, each with the message that follows, of different runs, $2 their bodies, $3 grace in ms, $4 most
     * steps, $5 most bytes of a run, $6 bytes of a history from which on it is fetched where the message may be lazy
     */
    append: `with n as (select * from json_to_recordset($1::json) as r (${STEP_RECORD}, is_lazy boolean)),
      open as materialized (
        select n.*, found.next_seq as seq, found.steps_bytes from (select * from n order by run_no desc) n
        ${oneByOne(`select next_seq, steps_bytes from ${runs}
          where no = n.run_no and ${UNDER_WAY} and not awaits_sdk for update`)}
      ), fitting as (
        select *, ceil((steps_bytes + step_size) / 3.0) * 4 + (seq + 1) * ${ENTRY_BYTES} as later_bytes from open
        where seq < $4 and steps_bytes + step_size <= $5::bigint
      ), step as (
        insert into ${steps} (run_no, seq, message_id, kind, step_id, target_step, concurrent, name, type, body)
        select run_no, seq, id, kind, step_id, target_step, concurrent, name, type,
          substring($2::bytea from step_at for step_size) from fitting
        on conflict do nothing returning run_no, message_id, octet_length(body) as bytes
      ), later as (
        update ${runs} r set next_seq = r.next_seq + 1, steps_bytes = r.steps_bytes + step.bytes
        from step where r.no = step.run_no
      ), appended as (select f.* from step join fitting f on f.id = step.message_id),
      stored as (
        ${insertedMessages(schema, 'appended', '$2', '$3::float8', {
          no: 'n.run_no',
          seq: 'n.seq',
          bytes: 'case when n.is_lazy and n.later_bytes > $6 then 0 else n.later_bytes end',
        })}
      ), ${created}
      select message_id from step`,

    /** $1 JSON array of the ids of runs and where their results lie, $2 the results */
    end: endStatement(schema),
  } as const;
}

/**
 * A run is ended only as the statement has seen it from its begin: who adds a message to one changes these columns, so all
 * that there are of it are seen, and cancelled, but for the one that is being delivered. That may be the one that asks.
 */
function endStatement(schema: string): string {
  const table = (name: string) => tableOf(schema, name);
  const [runs, messages, events] = [table('workflow_runs'), table('messages'), table('events')];
  const waiting = `finished_at is null and state <> 'ACTIVE' and run_role <> 'failure'`;
  return `with n as (select * from json_to_recordset($1::json) as r (run_id text, step_at int, step_size int)),
    seen as materialized (
      select n.*, found.* from n
      ${oneByOne(`select no, next_seq, awaits_sdk from ${runs} where id = n.run_id and ${UNDER_WAY} and invoker is null`)}
    ), open as materialized (
      select seen.* from (select * from seen order by no desc) seen
      ${oneByOne(`select no from ${runs} where no = seen.no and ${UNDER_WAY} and next_seq = seen.next_seq
        and awaits_sdk = seen.awaits_sdk for update`)}
    ), waits as (delete from ${table('workflow_waits')} where run_no in (select no from open)),
    notes as (delete from ${table('workflow_notes')} where run_no in (select no from open)),
    ended as (
      update ${runs} r set state = 'RUN_SUCCESS', ended_at = now(),
        result = substring($2::bytea from open.step_at for open.step_size)
      from open where r.no = open.no
    ), left_over as materialized (
      select found.id from open ${oneByOne(`select id from ${messages} where run_no = open.no and ${waiting}`)}
    ), chosen as materialized (
      select found.id from (select id from left_over order by id) left_over
      ${oneByOne(`select id from ${messages} where id = left_over.id and state in ('CREATED', 'RETRY', 'FAILING') for update`)}
    ), gone as (
      update ${messages} m set state = 'CANCELED', finished_at = now(), held = null, lease_until = null
      from chosen where m.id = chosen.id returning m.id, m.flow_key
    ), idle as (
      delete from ${table('flow_running')} where message_id in (select id from gone where flow_key is not null)
    ), log as (insert into ${events} (message_id, state) select id, 'CANCELED' from gone)
    select run_id, (select array_agg(distinct flow_key) from gone where flow_key is not null) as keys from open`;
}
