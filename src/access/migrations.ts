import { keptCallsTable } from '../lib/kept-calls/postgres-kept-calls.js';
import { type Migration, quoteIdentifier } from '../lib/postgres/postgres.js';

/** Tables of the schema that the gateway itself keeps. */
export function accessMigrations(schema: string): Migration[] {
  const s = quoteIdentifier(schema);
  return [
    {
      id: 1,
      name: 'tokens, audit, windows and calls with a key',
      tables: ['state', 'tokens', 'audit', 'windows', 'kept_calls'],
      up: async (connection) => {
        // begins at a random number: after a loss of the schema no gateway takes the new version for the one that it knows
        await connection.query(
          `create table ${s}.state (one boolean primary key default true check (one), version bigint not null)`,
        );
        await connection.query(`insert into ${s}.state (version) values (floor(random() * 1e15)::bigint)`);
        await connection.query(
          `create table ${s}.tokens (id text primary key, digest text not null unique, record jsonb not null)`,
        );
        await connection.query(
          `create table ${s}.audit (id bigint generated always as identity primary key, at timestamptz not null default now(), entry jsonb not null)`,
        );
        await connection.query(`create index on ${s}.audit (at)`);
        // in the words of rate-limiter-flexible
        await connection.query(
          `create table ${s}.windows (key varchar(255) primary key, points integer not null default 0, expire bigint)`,
        );
        await connection.query(keptCallsTable(`${s}.kept_calls`));
        await connection.query(`create index on ${s}.kept_calls (expires_at)`);
      },
    },
  ];
}
