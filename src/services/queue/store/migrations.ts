import { type Migration, quoteIdentifier } from '../../../lib/postgres/postgres.js';
import { workflowIndexes } from './workflow-indexes.js';
import { workflowTables } from './workflow-tables.js';

/** The versions of the queue's schema. A released one is never edited: what changes is a new one. */
export function queueMigrations(schema: string): Migration[] {
  const table = (name: string) => `${quoteIdentifier(schema)}.${quoteIdentifier(name)}`;
  return [
    {
      id: 1,
      name: 'messages and dead letters',
      tables: ['messages', 'dead_letters'],
      up: async (connection) => {
        for (const statement of messagesAndDeadLetters(table)) await connection.query(statement);
      },
    },
    {
      id: 2,
      name: 'log, ordered queues, flow control, URL groups, schedules, deduplication, keys',
      tables: [
        ...['events', 'events_other', 'deduplication', 'queues', 'url_groups', 'endpoints', 'schedules'],
        ...['flow_controls', 'flow_running', 'signing_keys', 'daily_usage'],
      ],
      up: async (connection) => {
        for (const statement of [...messagesOfAllKinds(table), ...eventLog(table), ...controlData(table)])
          await connection.query(statement);
      },
    },
    {
      id: 3,
      name: 'clean-up and control calls at any number of rows',
      tables: ['queue_deletions'],
      up: async (connection) => {
        for (const statement of boundedWork(table)) await connection.query(statement);
      },
    },
    {
      id: 4,
      name: 'bodies compressed with LZ4',
      tables: [],
      up: async (connection) => {
        // a server can be built without it, and then compresses as it did
        const known = await connection.query(
          `select from pg_settings where name = 'default_toast_compression' and 'lz4' = any(enumvals)`,
        );
        if (known.rowCount === 0) return;
        for (const [name, columns] of BODIES)
          for (const column of columns)
            await connection.query(`alter table ${table(name)} alter column ${column} set compression lz4`);
      },
    },
    {
      id: 5,
      name: 'schedules in the order of their making, in steps',
      tables: [],
      up: async (connection) => {
        await connection.query(`create index schedules_created on ${table('schedules')} (created_at, id)`);
      },
    },
    {
      id: 6,
      name: 'workflow runs',
      tables: ['workflow_runs', 'workflow_steps', 'workflow_waits', 'workflow_notes'],
      up: async (connection) => {
        for (const statement of workflowTables(table)) await connection.query(statement);
      },
    },
    {
      id: 9,
      name: 'workflow runs in the order of their start',
      tables: [],
      up: async (connection) => {
        for (const statement of workflowIndexes(table)) await connection.query(statement);
      },
    },
  ];
}

/** What may be large. */
const BODIES: readonly (readonly [table: string, columns: readonly string[]])[] = [
  ['messages', ['body', 'failure_body']],
  ['events', ['response_body']],
];

/**
 * `finished_at` rather than `state` stands in the index conditions: a claim changes neither an indexed column nor a
 * condition, so Postgres updates the row in place of the page (HOT) and touches no index.
 */
function messagesAndDeadLetters(table: (name: string) => string): string[] {
  return [
    `create table ${table('messages')} (
      id text primary key,
      state text not null check (state in ('CREATED', 'ACTIVE', 'RETRY', 'DELIVERED', 'FAILED', 'CANCELED')),
      prefix text not null,
      url text not null,
      method text not null,
      headers json not null,
      body bytea not null,
      max_retries int not null,
      timeout_ms int,
      not_before bigint not null,
      created_at bigint not null,
      callback json,
      failure_callback json,
      attempt int not null default 0,
      claims int not null default 0,
      due_at timestamptz not null,
      lease_until timestamptz,
      sweep_at timestamptz not null,
      sweeps int not null default 0,
      finished_at timestamptz
    ) with (fillfactor = 70)`,
    `create index messages_sweep on ${table('messages')} (sweep_at) where finished_at is null`,
    `create index messages_finished on ${table('messages')} (finished_at) where finished_at is not null`,
    `create table ${table('dead_letters')} (
      id text primary key,
      message_id text not null unique references ${table('messages')} (id) on delete cascade,
      created_at timestamptz not null default now(),
      error text,
      response_status int not null,
      response_headers json not null,
      response_body bytea not null
    )`,
  ];
}

/**
 * `held`: waits without a ticket, for its turn in an ordered queue or for room under its flow-control key. `state`
 * FAILING: its retries are used up, and RabbitMQ's dead-letter queue has it.
 */
function messagesOfAllKinds(table: (name: string) => string): string[] {
  const messages = table('messages');
  return [
    `alter table ${messages}
      add column seq bigserial,
      add column queue_name text,
      add column flow_key text,
      add column caller_ip text,
      add column callback_of text,
      add column details json,
      add column held text check (held in ('order', 'flow')),
      add column failure_error text,
      add column failure_status int,
      add column failure_headers json,
      add column failure_body bytea,
      drop constraint messages_state_check,
      add constraint messages_state_check
        check (state in ('CREATED', 'ACTIVE', 'RETRY', 'DELIVERED', 'FAILING', 'FAILED', 'CANCELED'))`,
    `create index messages_queue on ${messages} (queue_name, held, seq) where finished_at is null and queue_name is not null`,
    `create index messages_flow on ${messages} (flow_key, held, seq) where finished_at is null and flow_key is not null`,
    `create index dead_letters_created on ${table('dead_letters')} (created_at, id)`,
  ];
}

/** Partitioned by day: old days are dropped whole. What no day's partition takes goes to the default one. */
function eventLog(table: (name: string) => string): string[] {
  const events = table('events');
  return [
    `create sequence ${table('event_seq')}`,
    `create table ${events} (
      at timestamptz not null default clock_timestamp(),
      seq bigint not null default nextval('${table('event_seq')}'),
      message_id text not null,
      state text not null,
      next_at timestamptz,
      error text,
      response_status int,
      response_headers json,
      response_body bytea,
      primary key (at, seq)
    ) partition by range (at)`,
    `create index events_message on ${events} (message_id)`,
    `create table ${table('events_other')} partition of ${events} default`,
  ];
}

function controlData(table: (name: string) => string): string[] {
  const times =
    'created_at timestamptz not null default now(), updated_at timestamptz not null default now()';
  return [
    `create table ${table('deduplication')} (
      key text primary key, message_id text not null, expires_at timestamptz not null,
      shared boolean not null default false
    )`,
    `create index deduplication_message on ${table('deduplication')} (message_id)`,
    `create index deduplication_expiry on ${table('deduplication')} (expires_at)`,
    `create table ${table('queues')} (
      name text primary key, parallelism int not null default 1, paused boolean not null default false, ${times}
    )`,
    `create table ${table('url_groups')} (name text primary key, headers json not null default '{}', ${times})`,
    `create table ${table('endpoints')} (
      group_name text not null references ${table('url_groups')} (name) on delete cascade,
      url text not null, name text, position bigserial,
      primary key (group_name, url), unique (group_name, name)
    )`,
    `create table ${table('schedules')} (
      id text primary key, cron text not null, destination text not null, controls json not null,
      headers json not null, body bytea not null, caller_ip text, paused boolean not null default false,
      created_at timestamptz not null default now(), next_at timestamptz, last_at timestamptz,
      last_messages text[] not null default '{}'
    )`,
    `create index schedules_next on ${table('schedules')} (next_at) where not paused`,
    `create table ${table('flow_controls')} (
      key text primary key, parallelism int, rate int, period int not null default 1,
      paused boolean not null default false, pinned_parallelism boolean not null default false,
      pinned_rate boolean not null default false, period_start timestamptz not null default now(),
      rate_count int not null default 0
    )`,
    `create table ${table('flow_running')} (
      message_id text primary key, key text not null, claims int not null
    )`,
    `create index flow_running_key on ${table('flow_running')} (key)`,
    `create table ${table('signing_keys')} (
      id boolean primary key default true check (id), current text not null, next text not null, configured text not null
    )`,
    `create table ${table('daily_usage')} (day date primary key, messages bigint not null default 0)`,
  ];
}

/**
 * `dead`: a dead letter stands for the message, which is kept as long as that; the last response is kept with the message
 * alone. `messages_purge` so holds only what may go, `messages_waiting` only what can be cancelled, in the order of the
 * ids. Of a deleted queue the messages up to a place are still to be cancelled.
 */
function boundedWork(table: (name: string) => string): string[] {
  const messages = table('messages');
  const letters = table('dead_letters');
  return [
    `alter table ${messages} add column dead boolean not null default false`,
    `update ${messages} m set dead = true,
        failure_error = case when m.failure_status is null then d.error else m.failure_error end,
        failure_headers = coalesce(m.failure_headers, d.response_headers),
        failure_body = coalesce(m.failure_body, d.response_body),
        failure_status = coalesce(m.failure_status, d.response_status)
      from ${letters} d where d.message_id = m.id`,
    `alter table ${letters} drop column error, drop column response_status, drop column response_headers,
      drop column response_body`,
    `drop index ${table('messages_finished')}`,
    `create index messages_purge on ${messages} (finished_at) where finished_at is not null and not dead`,
    `create index messages_waiting on ${messages} (id) where finished_at is null`,
    `create table ${table('queue_deletions')} (name text primary key, upto bigint not null)`,
  ];
}
