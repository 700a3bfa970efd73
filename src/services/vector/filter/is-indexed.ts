import type { Filter } from './filter-ast.js';

/** Whether the GIN index (jsonb_path_ops) finds the matches of a filter: it knows which values there are, not which there are not. */
export function isIndexed(filter: Filter): boolean {
  switch (filter.is) {
    case 'and':
      return filter.of.some(isIndexed);
    case 'or':
      return filter.of.every(isIndexed);
    case 'equal':
    case 'in':
    case 'contains':
      return !filter.negated;
    default:
      return false;
  }
}
