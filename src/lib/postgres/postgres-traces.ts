import type { Tracer } from '../traces/tracer.js';
import type { Database, Queryable, Transactions } from './postgres-database.js';

const SYSTEM = { 'db.system.name': 'postgresql' };

/** The same database with a span for each statement and transaction of a request that is traced. None holds a value or the text of a statement. */
export function tracedDatabase(database: Database, tracer: Tracer): Database {
  return {
    ...tracedTransactions(database, tracer),
    check: () => database.check(),
    within: (signal) => tracedTransactions(database.within(signal), tracer),
    patient: tracedTransactions(database.patient, tracer),
    aside: (work, signal) => database.aside(work, signal),
  };
}

function tracedTransactions(inner: Transactions, tracer: Tracer): Transactions {
  return {
    ...tracedQueryable(inner, tracer),
    transaction: (work) =>
      tracer.within('postgres transaction', SYSTEM, () =>
        inner.transaction((connection) => work(tracedQueryable(connection, tracer))),
      ),
  };
}

function tracedQueryable(inner: Queryable, tracer: Tracer): Queryable {
  return {
    query: (sql, values, name, reads) =>
      tracer.within(
        name === undefined ? 'postgres' : `postgres ${name}`,
        name === undefined ? SYSTEM : { ...SYSTEM, 'db.operation.name': name },
        () => inner.query(sql, values, name, reads),
      ),
  };
}
