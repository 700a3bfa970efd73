/**
 * Runs of workflows and their steps. Whatever may happen once is a unique key: one open run of an id, one result of a
 * step, one plan of a branch. A step is kept as it was posted; `kind` and the columns beside it were read from it.
 */
export function workflowTables(table: (name: string) => string): string[] {
  const messages = table('messages');
  const runs = table('workflow_runs');
  const steps = table('workflow_steps');
  return [
    `create table ${runs} (
      no bigserial primary key,
      id text not null,
      created_ms bigint not null,
      url text not null,
      state text not null check (state in ('RUN_STARTED', 'RUN_SUCCESS', 'RUN_FAILED', 'RUN_CANCELED')),
      labels text[] not null default '{}',
      flow_key text,
      caller_ip text,
      settings json not null,
      awaits_sdk boolean not null default false,
      invoker json,
      next_seq int not null default 0,
      steps_bytes bigint not null default 0,
      result bytea,
      ended_at timestamptz,
      failure json,
      unique (id, created_ms)
    ) with (fillfactor = 70)`,
    `create unique index workflow_runs_open on ${runs} (id) where ended_at is null`,
    `create index workflow_runs_ended on ${runs} (ended_at) where ended_at is not null`,
    `create table ${steps} (
      run_no bigint not null references ${runs} (no) on delete cascade,
      seq int not null,
      message_id text not null,
      kind text not null
        check (kind in ('init', 'result', 'plan', 'toCallback', 'fromCallback', 'wait', 'invoke')),
      step_id int not null,
      target_step int,
      concurrent int not null,
      name text not null,
      type text not null,
      body bytea not null,
      meta json,
      created_at timestamptz not null default now(),
      primary key (run_no, seq)
    )`,
    `create unique index workflow_steps_result on ${steps} (run_no, step_id) where kind = 'result'`,
    `create unique index workflow_steps_plan on ${steps} (run_no, target_step) where kind = 'plan'`,
    `create unique index workflow_steps_other on ${steps} (run_no, step_id, kind)
      where kind in ('toCallback', 'fromCallback', 'wait', 'invoke')`,
    `create table ${table('workflow_waits')} (
      run_no bigint not null references ${runs} (no) on delete cascade,
      step_id int not null,
      event text not null,
      deadline_ms bigint not null,
      timer_id text not null,
      request json not null,
      primary key (run_no, step_id)
    )`,
    `create index workflow_waits_event on ${table('workflow_waits')} (event)`,
    `create table ${table('workflow_notes')} (
      run_no bigint not null references ${runs} (no) on delete cascade,
      event text not null,
      seq bigserial,
      data bytea not null,
      primary key (run_no, event, seq)
    )`,
    `alter table ${messages}
      add column run_no bigint,
      add column run_seq int,
      add column run_role text check (run_role in ('step', 'call', 'callback', 'failure', 'timer')),
      add column run_bytes int`,
    `create index messages_run on ${messages} (run_no) where finished_at is null and run_no is not null`,
    `alter table ${table('dead_letters')} add column run_no bigint`,
    `create index dead_letters_run on ${table('dead_letters')} (run_no) where run_no is not null`,
  ];
}
