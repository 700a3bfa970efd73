/** How a statement failed, for a service's translation into its own reply. */
export interface DatabaseFailure {
  /**
   * `unavailable` nothing was executed, or the connection is gone and the outcome unknown; `timeout` Postgres or the
   * client ended the wait; `statement` Postgres refused the statement, `sqlState` says why; `other` not Postgres' at all.
   */
  readonly kind: 'unavailable' | 'timeout' | 'statement' | 'other';
  readonly sqlState: string | undefined;
}

const NETWORK_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
]);

// node-postgres throws these without a code
const CONNECT_TIMEOUT = /^timeout expired$|Connection terminated due to connection timeout/;
const UNAVAILABLE_TEXT =
  /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end|^SASL: |does not support SSL/;
// Node's: TLS that is not spoken, or a certificate that is not trusted
const TLS_CODES = /^(ERR_TLS_|ERR_SSL_|UNABLE_TO_|EPROTO$)|CERT/;

/**
 * What kind of failure a thrown error is. SQLSTATE classes: Postgres' manual, appendix A. Looks at the error's fields
 * only: an error that Node itself made is not an instance of another realm's `Error`.
 */
export function classifyDatabaseError(error: unknown): DatabaseFailure {
  const { code, message } = fieldsOf(error);
  if (isUnreachable(error)) return { kind: 'unavailable', sqlState: undefined };
  if (/^[0-9A-Z]{5}$/.test(code)) return { kind: kindOf(code), sqlState: code };
  if (UNAVAILABLE_TEXT.test(message) || TLS_CODES.test(code))
    return { kind: 'unavailable', sqlState: undefined };
  if (/Query read timeout/.test(message)) return { kind: 'timeout', sqlState: undefined };
  return { kind: 'other', sqlState: undefined };
}

function fieldsOf(error: unknown): { code: string; message: string } {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  return { code: typeof code === 'string' ? code : '', message: typeof message === 'string' ? message : '' };
}

function kindOf(sqlState: string): DatabaseFailure['kind'] {
  if (sqlState === '57014') return 'timeout';
  // 08 connection, 28 login refused, 3D no such database, 57P shutdown and crash, 53 out of connections, memory or disk,
  // 25P03 idle in a transaction
  return /^(08|28|3D|57P|53)|^25P03$/.test(sqlState) ? 'unavailable' : 'statement';
}

/** Whether another try may go through: schema or table not there, read-only (a replica), serialisation, deadlock. */
export function isPassing(sqlState: string): boolean {
  return /^(3F000|42P01|25006|40)/.test(sqlState);
}

/** Whether a schema or a table was not there. */
export function isMissingTable(error: unknown): boolean {
  return /^(3F000|42P01)$/.test(fieldsOf(error).code);
}

/** Whether the server takes no writes: a standby, or a primary that is one no more. */
export function isReadOnly(error: unknown): boolean {
  return fieldsOf(error).code === '25006';
}

/** Whether a connection was not made in time. */
export function isConnectTimeout(error: unknown): boolean {
  return CONNECT_TIMEOUT.test(fieldsOf(error).message);
}

/** Whether no connection of the pool became free in time. That the server is away is then not said. */
export function isPoolBusy(error: unknown): boolean {
  return /timeout exceeded when trying to connect/.test(fieldsOf(error).message);
}

/** Whether the server could not be reached at all, so that every other attempt would fail as well. */
export function isUnreachable(error: unknown): boolean {
  return NETWORK_CODES.has(fieldsOf(error).code) || isConnectTimeout(error);
}

/** Whether the connection on which `error` was thrown can run another statement. */
export function leavesConnectionUsable(error: unknown): boolean {
  const { kind, sqlState } = classifyDatabaseError(error);
  return kind === 'statement' || kind === 'other' || sqlState === '57014';
}
