import { HttpError } from './errors.js';

/** More than any call has: ids of messages, each under a key of its own. Node takes 1.1 µs for each. */
const MOST_PARAMETERS = 10_000;

/** The query of a request's target. @throws HttpError 400 for more parameters than any call has */
export function queryParameters(target: string): URLSearchParams {
  const start = target.indexOf('?');
  if (start < 0) return new URLSearchParams();
  let count = 1;
  for (let at = target.indexOf('&', start); at >= 0; at = target.indexOf('&', at + 1)) count++;
  if (count > MOST_PARAMETERS)
    throw new HttpError('invalid_request', `The query has more than ${MOST_PARAMETERS} parameters.`);
  return new URLSearchParams(target.slice(start + 1));
}

/** The first value of one parameter of a target; reads no others, for nobody has proved yet who sends them. */
export function queryParameter(target: string, key: string): string | undefined {
  const start = target.indexOf('?');
  if (start < 0) return undefined;
  for (let from = start + 1; from <= target.length; ) {
    const and = target.indexOf('&', from);
    const end = and < 0 ? target.length : and;
    if (mayBeginWith(target, from, key)) {
      const value = new URLSearchParams(target.slice(from, end)).get(key);
      if (value !== null) return value;
    }
    from = end + 1;
  }
  return undefined;
}

/** Whether a key that begins there is this one, or has escapes. */
function mayBeginWith(target: string, from: number, key: string): boolean {
  const first = target[from];
  if (first !== key[0] && first !== '%' && first !== '?') return false;
  return target.startsWith(key, from) || target.slice(from, from + 3 * key.length).includes('%');
}
