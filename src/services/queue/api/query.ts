import { parseJsonBody } from '../../../http/body.js';
import { HttpError } from '../../../http/errors.js';
import { queryParameters } from '../../../http/query.js';

interface Value {
  readonly text: string;
  /** A comma in it is a comma and separates nothing. */
  readonly isWhole: boolean;
}

/** A request's query, and what its body says of the same: repeated keys keep all their values, decoded, in order. */
export class Query {
  private readonly values = new Map<string, Value[]>();

  /** @param target path and query, or the query with its question mark */
  constructor(target: string) {
    for (const [key, value] of queryParameters(target)) {
      // the token, which senders without headers put there
      if (key === 'qstash_token') continue;
      this.append(key, { text: value, isWhole: false });
    }
  }

  /**
   * Takes the fields of a JSON object for further keys, each a string or a list of strings, `numeric` ones whole numbers
   * as well, `flags` true or false. A body of white space says nothing.
   * @throws HttpError 400 for anything else: what is not understood must not count as nothing said
   */
  async addBody(
    body: Buffer,
    numeric: readonly string[],
    maxValues: number,
    flags: readonly string[] = [],
  ): Promise<void> {
    const value = await bodyObject(body);
    if (value === undefined) return;
    const entries = Object.entries(value);
    if (entries.length > MAX_KEYS)
      throw new HttpError('invalid_request', `The body has more than ${MAX_KEYS} keys.`);
    // a list of ids that somebody forgot to fill in looks like this
    if (entries.length === 0)
      throw new HttpError('invalid_request', 'The body names nothing; leave it out to mean all.');
    for (const [key, value] of entries) {
      if (this.values.has(key))
        throw new HttpError('invalid_request', `${key}: is in the query and in the body`);
      const isFlag = flags.includes(key) && typeof value === 'boolean';
      const list: unknown[] = isFlag ? [String(value)] : Array.isArray(value) ? value : [value];
      if (list.length > maxValues)
        throw new HttpError('invalid_request', `${key}: more than ${maxValues} values`);
      this.values.set(key, []);
      for (const one of list) this.append(key, { text: textOf(key, one, numeric), isWhole: true });
    }
  }

  private append(key: string, value: Value): void {
    const same = this.values.get(key);
    if (same === undefined) this.values.set(key, [value]);
    else same.push(value);
  }

  has(key: string): boolean {
    return this.values.has(key);
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
      ?.flatMap(({ text, isWhole }) => (isWhole ? [text] : text.split(',')))
      .map((value) => value.trim())
      .filter((value) => value !== '');
  }

  /** All values as they were sent. */
  whole(key: string): string[] | undefined {
    return this.values.get(key)?.map(({ text }) => text);
  }

  /**
   * Of a key that has one value.
   * @throws HttpError 400 when it has different ones (which of them counts would be a guess), or the empty list of a body:
   *   as no value at all it would mean everything
   */
  first(key: string): string | undefined {
    const values = this.values.get(key);
    if (values?.length === 0) throw new HttpError('invalid_request', `${key}: has no value`);
    const text = values?.[0]?.text;
    if (values?.some((other) => other.text !== text) === true)
      throw new HttpError('invalid_request', `${key}: has more than one value`);
    return text;
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

/** More keys than any call has filters. */
const MAX_KEYS = 100;

/** The JSON object of a body; `undefined` of one without anything but blanks. */
async function bodyObject(body: Buffer): Promise<object | undefined> {
  let value: unknown;
  try {
    value = await parseJsonBody(body);
  } catch (cause) {
    throw new HttpError('invalid_request', 'The body is no JSON.', { cause });
  }
  if (value === undefined) return undefined;
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new HttpError('invalid_request', 'The body is no JSON object.');
}

function textOf(key: string, value: unknown, numeric: readonly string[]): string {
  if (typeof value === 'string') return value;
  if (numeric.includes(key) && Number.isSafeInteger(value)) return String(value);
  const or = numeric.includes(key) ? ', a whole number' : '';
  throw new HttpError('invalid_request', `${key}: expected a string${or} or a list of them`);
}

/** Unix ms. @throws HttpError 400 */
export function unixMs(key: string, text: string): number {
  const ms = Number(text);
  if (/^\d{1,15}$/.test(text)) return ms;
  throw new HttpError('invalid_request', `${key}: expected a Unix time in milliseconds`);
}
