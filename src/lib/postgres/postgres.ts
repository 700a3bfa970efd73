import pg from 'pg';
import type { ReleaseRegistry } from '../lifecycle.js';
import type { Logger } from '../logger.js';
import type { Tracer } from '../traces/tracer.js';
import { postgresAddress, type SessionKind } from './postgres-address.js';
import { Connections, REPLY_MS, withAside } from './postgres-connections.js';
import type { Database } from './postgres-database.js';
import { clientsOf, PostgresHosts } from './postgres-hosts.js';
import { tracedDatabase } from './postgres-traces.js';
import { SilenceWatch } from './postgres-watch.js';

export type { Database, Queryable, QueryResult, Transactions } from './postgres-database.js';
export {
  classifyDatabaseError,
  isMissingTable,
  isPassing,
  isPoolBusy,
  isUnreachable,
} from './postgres-errors.js';
export {
  lockSchema,
  type Migration,
  migrate,
  quoteIdentifier,
  UnusableSchema,
} from './postgres-migrations.js';

export interface DatabaseOptions {
  /**
   * `postgres://user:password@host:port/database`; with several hosts (`one:5432,two:5432`) connections go to the one that
   * can be written to, or is what `target_session_attrs` says.
   */
  url: string;
  /** What is wanted of several hosts where the address does not say so. */
  sessionKind?: SessionKind;
  /** Most connections held at once. */
  poolSize: number;
  /**
   * How long a statement may run, in ms: Postgres itself ends it. Large values get 250 ms a MiB more. A caller waits as long
   * for a free connection.
   */
  statementTimeoutMs: number;
  /** How long making a connection may take, in ms. */
  connectTimeoutMs: number;
  applicationName: string;
  /** Run-time settings of every connection, such as `{ 'hnsw.ef_search': '80' }`. */
  settings?: Readonly<Record<string, string>>;
  /** Told each time that a statement of the pool met a schema or a table that is not there. */
  onMissingTable?: () => void;
  log: Logger;
  lifecycle: ReleaseRegistry;
  /** Where traces are wanted. */
  tracer?: Tracer | undefined;
}

/** Longest wait for an answer that no request waits for, in ms; as long may a server that is cut off keep a connection. */
const PATIENT_MS = 10_000;

/** A pool on `url`. Connects on first use, so a database that is away fails the query, not the start. */
export function openDatabase(options: DatabaseOptions): Database {
  const { pool, aside, beside, doubt } = createPool(options);
  const watch = new SilenceWatch(beside, options.log, options.lifecycle);
  const connections = new Connections({ ...options, pool, beside, watch, doubt });
  options.lifecycle.onStop('postgres pool', () => connections.end());
  const unlimited = connections.within();
  const database: Database = {
    ...unlimited,
    within: (signal) => connections.within(signal),
    patient: connections.within(undefined, PATIENT_MS),
    check: async () => {
      await unlimited.query('select 1');
    },
    aside: (work, signal) => withAside(aside(), work, signal, beside),
  };
  return options.tracer === undefined ? database : tracedDatabase(database, options.tracer);
}

interface Pooled {
  readonly pool: pg.Pool;
  /** Makes a connection that has no time limits but the one for connecting. */
  readonly aside: () => pg.Client;
  /** The same to the server that another one is connected to. */
  readonly beside: (other: pg.ClientBase) => pg.Client;
  /** Of several hosts, another one may be the right one now. */
  readonly doubt: () => void;
}

function createPool(options: DatabaseOptions): Pooled {
  // the pool has one limit for waiting and for connecting; a busy pool may take its time, a dead server may not
  class PromptClient extends pg.Client {
    constructor(config?: string | pg.ClientConfig) {
      super({ ...(config as pg.ClientConfig), connectionTimeoutMillis: options.connectTimeoutMs });
    }
  }
  const { urls, kind } = postgresAddress(options.url, options.sessionKind);
  const look = (url: string) =>
    new PromptClient({
      connectionString: url,
      query_timeout: options.connectTimeoutMs,
      application_name: `${options.applicationName} looks for the primary`,
    });
  const hosts = kind && new PostgresHosts({ urls, kind }, look);
  const Client = hosts === undefined ? PromptClient : clientsOf(hosts, PromptClient);
  const { connectionString, runTime } = withSettings(urls[0] as string, options.settings ?? {});
  const common = { connectionString, application_name: options.applicationName, keepAlive: true };
  const pool = new pg.Pool({
    ...common,
    Client,
    options: runTime,
    max: options.poolSize,
    connectionTimeoutMillis: options.statementTimeoutMs,
    idleTimeoutMillis: 60_000,
    statement_timeout: options.statementTimeoutMs,
    // a gateway that stalls inside a transaction must not keep its locks for ever
    idle_in_transaction_session_timeout: options.statementTimeoutMs,
    // a stalled server (paused, cut off) never sends the statement timeout's error: the client gives up a little later
    query_timeout: options.statementTimeoutMs + REPLY_MS,
  });
  // an idle connection that dies reports here; without a listener it would end the process
  pool.on('error', (err) => options.log.warn({ err }, 'postgres: an idle connection was lost'));
  const beside = (other: pg.ClientBase) => {
    const { host, port } = other as pg.Client;
    return Object.assign(new PromptClient(common), { host, port });
  };
  return { pool, aside: () => new Client(common), beside, doubt: () => hosts?.doubt() };
}

/** Settings that the URL brings in its parameter `options` come last and win; node-postgres would drop ours for them. */
function withSettings(
  url: string,
  settings: Readonly<Record<string, string>>,
): { connectionString: string; runTime: string } {
  const parsed = new URL(url);
  const own = parsed.searchParams.get('options');
  parsed.searchParams.delete('options');
  const ours = Object.entries(settings).map(([key, value]) => `-c ${key}=${value.replace(/[\\ ]/g, '\\$&')}`);
  return {
    connectionString: parsed.href,
    runTime: [...ours, ...(own === null ? [] : [own])].join(' '),
  };
}
