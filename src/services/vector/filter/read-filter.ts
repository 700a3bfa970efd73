import type { FilterInput } from '../schemas/filter.js';
import type { Filter } from './filter-ast.js';
import { parseFilter } from './parse-filter.js';
import { parseJsonFilter } from './parse-json-filter.js';

/** @throws HttpError 400 */
export function readFilter(filter: FilterInput): Filter {
  return typeof filter === 'string' ? parseFilter(filter) : parseJsonFilter(filter);
}
