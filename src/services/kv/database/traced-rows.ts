import type { Tracer } from '../../../lib/traces/tracer.js';
import type { Row } from '../commands/commands.js';

/** Does `work`, which sends `rows` to Redis, in a span of its own. It holds the name of a command, no key and no value. */
export function tracedRows<T>(tracer: Tracer, rows: readonly Row[], work: () => Promise<T>): Promise<T> {
  const [first] = rows;
  const operation = rows.length === 1 && first !== undefined ? first.rule.name : 'PIPELINE';
  const batch = rows.length === 1 ? {} : { 'db.operation.batch.size': rows.length };
  const attributes = { 'db.system.name': 'redis', 'db.operation.name': operation, ...batch };
  return tracer.within(`redis ${operation}`, attributes, work);
}
