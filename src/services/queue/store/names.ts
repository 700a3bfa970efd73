import { HttpError } from '../../../http/errors.js';

/** `.` and `..` would be steps in a path: no call could name them. */
const NAME = /^(?!\.{1,2}$)[A-Za-z0-9._-]+$/;
const MAX_LENGTH = 256;

/** Whether a text can be the name of a URL group, queue or schedule; no URL can. */
export function isName(text: string): boolean {
  return NAME.test(text);
}

/** @throws HttpError 400 */
export function checkName(text: string, what: string): void {
  if (!NAME.test(text) || text.length > MAX_LENGTH)
    throw new HttpError(
      'invalid_request',
      `The name of a ${what} has 1 to ${MAX_LENGTH} letters, digits, ".", "_" and "-", and is neither "." nor "..".`,
    );
}
