export interface QueryResult<Row> {
  rows: Row[];
  rowCount: number;
}

/** Something that runs statements: the pool, or the one connection of a transaction. */
export interface Queryable {
  /**
   * @param values `$1...`; a Buffer goes out in Postgres' binary format
   * @param name prepares the statement under this name, once a connection
   * @param reads bytes that its answer is known to have, where they may be many: it gets the time for them
   */
  query<Row = Record<string, unknown>>(
    sql: string,
    values?: readonly unknown[],
    name?: string,
    reads?: number,
  ): Promise<QueryResult<Row>>;
}

export interface Database extends Transactions {
  /** Resolves when Postgres answers. */
  check(): Promise<void>;
  /** The same pool for one request: when `signal` aborts, what waits gives up and what runs is cancelled in Postgres. */
  within(signal: AbortSignal): Transactions;
  /**
   * The same pool for work that no request waits for. A statement may run no longer, but its answer may come late: who
   * gives up sooner on a busy machine does not learn what Postgres has done.
   */
  readonly patient: Transactions;
  /** Runs `work` on a connection outside the pool without time limits, for what may take minutes; `signal` cancels it. */
  aside<T>(work: (connection: Queryable) => Promise<T>, signal: AbortSignal): Promise<T>;
}

/** What a request needs of a database. */
export interface Transactions extends Queryable {
  /** Runs `work` between BEGIN and COMMIT on one connection; an error rolls all of it back. */
  transaction<T>(work: (connection: Queryable) => Promise<T>): Promise<T>;
}
