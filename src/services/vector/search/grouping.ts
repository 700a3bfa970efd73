import { HttpError } from '../../../http/errors.js';
import type { Filter, Path } from '../filter/filter-ast.js';

/** A field whose values make groups, each of which gives at most `size` entries. */
export interface Grouping {
  readonly path: Path;
  readonly size: number;
  /** Of the query itself. */
  readonly filter: Filter | undefined;
}

/** Groups of one query: each that is full stands in the filter of what is asked next. */
const MAX_GROUPED = 1_000;

/** @throws HttpError 422 */
export function checkGrouping(topK: number, size: number, place: string): void {
  if (topK * size > MAX_GROUPED)
    throw new HttpError('unprocessable', `${place}: topK times groupSize is more than ${MAX_GROUPED}`);
}
