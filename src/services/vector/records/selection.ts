import { filterJsonpath } from '../filter/filter-jsonpath.js';
import { readFilter } from '../filter/read-filter.js';
import type { FilterInput } from '../schemas/filter.js';
import type { Parameters } from '../statements/index-shape.js';
import { prefixCondition } from '../statements/read-statements.js';

/** As SQL on the columns of a record. */
export type Condition = (parameters: Parameters) => string;

/**
 * The records that a request means by the beginning of their ids, by their metadata or by both.
 * @returns undefined when it names neither
 * @throws HttpError 400 for a filter that is none
 */
export function selectionOf({
  prefix,
  filter,
}: {
  readonly prefix?: string | undefined;
  readonly filter?: FilterInput | undefined;
}): Condition | undefined {
  if (prefix === undefined && filter === undefined) return undefined;
  const jsonpath = filter === undefined ? undefined : filterJsonpath(readFilter(filter));
  return (parameters) =>
    [
      ...(prefix === undefined ? [] : [prefixCondition(parameters, prefix)]),
      ...(jsonpath === undefined ? [] : [`metadata @@ ${parameters.add(jsonpath, 'jsonpath')}`]),
    ].join(' and ');
}
