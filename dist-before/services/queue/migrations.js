import { quoteIdentifier } from '../../lib/postgres.js';
/** The versions of the queue's schema. A released one is never edited: what changes is a new one. */
export function queueMigrations(schema) {
    const table = (name) => `${quoteIdentifier(schema)}.${quoteIdentifier(name)}`;
    return [
        {
            id: 1,
            name: 'messages and dead letters',
            up: async (connection) => {
                for (const statement of messagesAndDeadLetters(table))
                    await connection.query(statement);
            },
        },
    ];
}
/**
 * `finished_at` rather than `state` stands in the index conditions: a claim changes neither an indexed column nor a
 * condition, so Postgres updates the row in place of the page (HOT) and touches no index.
 */
function messagesAndDeadLetters(table) {
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
//# sourceMappingURL=migrations.js.map