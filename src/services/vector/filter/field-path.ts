import { HttpError } from '../../../http/errors.js';
import { isStorable, storable } from '../schemas/names.js';
import type { Path } from './filter-ast.js';
import { parsePath } from './parse-path.js';

/** A field that a request names outside of a filter. @throws HttpError 400 */
export function fieldPath(field: string): Path {
  if (!isStorable(field)) throw new HttpError('invalid_request', `field: ${storable}`);
  return parsePath(field, 0);
}
