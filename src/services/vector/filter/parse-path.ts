import type { Path, Step } from './filter-ast.js';
import { filterError, readString } from './filter-tokens.js';

/** Most steps of a path, far from where Postgres' own recursion ends (18,000 measured); metadata is not nearly as deep. */
const MAX_STEPS = 1_000;

const KEY = /[^.[]+/y;
const PLACE = /\[(?:(\d{1,9})|#-(\d{1,9}))\]/y;

/**
 * `a.b[0]`, `tags[#-1]`: keys apart by dots, places in brackets. A `]` or `#` outside brackets belongs to a key; one with dots,
 * brackets or blanks stands in quotes.
 * @param at place of the path in the filter, for the error
 * @throws HttpError 400
 */
export function parsePath(text: string, at: number): Path {
  const steps: Step[] = [];
  let next = 0;
  const match = (pattern: RegExp) => {
    pattern.lastIndex = next;
    const found = pattern.exec(text);
    if (found !== null) next += found[0].length;
    return found;
  };
  const readKey = (): string => {
    const quote = text[next];
    if (quote !== "'" && quote !== '"') {
      const key = match(KEY);
      if (key === null) throw filterError(at + next, 'a key');
      return key[0];
    }
    const { value, end } = readString(text, next, quote);
    next = end;
    return value;
  };
  do {
    steps.push({ key: readKey() });
    while (text[next] === '[') {
      const place = match(PLACE);
      if (place === null) throw filterError(at + next, 'a place such as [0] or [#-1]');
      steps.push(place[1] === undefined ? { fromEnd: Number(place[2]) } : { place: Number(place[1]) });
    }
    if (next < text.length && text[next] !== '.') throw filterError(at + next, '".", "[" or a blank');
  } while (next++ < text.length);
  if (steps.length > MAX_STEPS) throw filterError(at, `a field of at most ${MAX_STEPS} steps`);
  return steps;
}
