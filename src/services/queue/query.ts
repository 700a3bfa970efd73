import { HttpError } from '../../http/errors.js';

/** A request's query: repeated keys keep all their values, decoded, in order. */
export class Query {
  private readonly values = new Map<string, string[]>();

  /** @param target path and query, or the query with its question mark */
  constructor(target: string) {
    const start = target.indexOf('?');
    const pairs = start < 0 ? [] : new URLSearchParams(target.slice(start + 1));
    for (const [key, value] of pairs) {
      // the token, which senders without headers put there
      if (key === 'qstash_token') continue;
      const same = this.values.get(key);
      if (same === undefined) this.values.set(key, [value]);
      else same.push(value);
    }
  }

  get keys(): string[] {
    return [...this.values.keys()];
  }

  get isEmpty(): boolean {
    return this.values.size === 0;
  }

  /** All values; several in one are separated by commas. `undefined` when the key is not there at all. */
  list(key: string): string[] | undefined {
    return this.values
      .get(key)
      ?.flatMap((value) => value.split(','))
      .map((value) => value.trim())
      .filter((value) => value !== '');
  }

  /** All values as they were sent. */
  whole(key: string): string[] | undefined {
    return this.values.get(key);
  }

  first(key: string): string | undefined {
    return this.values.get(key)?.[0];
  }

  /** A whole number within its limits. @throws HttpError 400 */
  count(key: string, byDefault: number, most: number): number {
    const text = this.first(key);
    if (text === undefined) return byDefault;
    const count = /^\d{1,9}$/.test(text) ? Number(text) : 0;
    if (count < 1 || count > most)
      throw new HttpError('invalid_request', `${key}: expected a whole number from 1 to ${most}`);
    return count;
  }

  /** @throws HttpError 400 when there is another key: a mistyped filter must never act on everything */
  allowOnly(allowed: Iterable<string>): void {
    const known = new Set(allowed);
    const unknown = this.keys.find((key) => !known.has(key));
    if (unknown !== undefined)
      throw new HttpError(
        'invalid_request',
        `${unknown}: there is no such filter; known: ${[...known].join(', ')}`,
      );
  }
}

/** Unix ms. @throws HttpError 400 */
export function unixMs(key: string, text: string): number {
  const ms = Number(text);
  if (/^\d{1,15}$/.test(text)) return ms;
  throw new HttpError('invalid_request', `${key}: expected a Unix time in milliseconds`);
}
