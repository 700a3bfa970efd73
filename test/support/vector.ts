import pg from 'pg';
import { backendAddress } from './environment.js';
import { TOKENS } from './tokens.js';

export interface VectorReply {
  readonly status: number;
  readonly headers: Headers;
  /** The reply's `result`. */
  readonly result: unknown;
  /** The reply's `error`. */
  readonly error: unknown;
  readonly text: string;
}

export interface CallOptions {
  readonly method?: string;
  readonly token?: string;
  readonly headers?: Record<string, string>;
}

/** Calls one index by hand, as a client without an SDK does. A string is sent as it is, everything else as JSON. */
export function vectorCaller(indexUrl: string) {
  return async (path: string, body?: unknown, options: CallOptions = {}): Promise<VectorReply> => {
    const response = await fetch(indexUrl + path, {
      method: options.method ?? 'POST',
      headers: { authorization: `Bearer ${options.token ?? TOKENS.vector}`, ...options.headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      signal: AbortSignal.timeout(20_000),
    });
    const text = await response.text();
    const json = JSON.parse(text) as { result?: unknown; error?: unknown };
    return {
      status: response.status,
      headers: response.headers,
      text,
      result: json.result,
      error: json.error,
    };
  };
}

/** A connection of the test's own to the same Postgres. */
export async function withPostgres<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: backendAddress('PORTICO_DATABASE_URL'),
    connectionTimeoutMillis: 5_000,
  });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Removes what a test file's gateways made. */
export async function dropSchema(schema: string): Promise<void> {
  await withPostgres((client) =>
    client.query(`drop schema if exists ${pg.escapeIdentifier(schema)} cascade`),
  );
}
