import type { Glob, GlobPart } from './filter-ast.js';
import { filterError } from './filter-tokens.js';

/** Most wildcards and classes of a pattern, far from where Postgres' regular expressions give up (14,000 measured). */
const MAX_WILDCARDS = 1_000;

/**
 * A pattern as SQLite's GLOB reads it: `*`, `?`, `[abc]`, `[a-z]`, `[^a-z]`; a `]` that comes first in a class is a member.
 * @param at place of the pattern in the filter, for the error
 * @throws HttpError 400 for a class that is not closed, a range that runs backwards, or too many wildcards
 */
export function parseGlob(pattern: string, at: number): Glob {
  const chars = [...pattern];
  const parts: GlobPart[] = [];
  let text = '';
  const flush = () => {
    if (text !== '') parts.push({ text });
    text = '';
  };
  for (let i = 0; i < chars.length; i++) {
    const char = chars[i] as string;
    if (char === '*' || char === '?') {
      flush();
      parts.push({ any: char === '*' ? 'many' : 'one' });
    } else if (char === '[') {
      flush();
      const { part, next } = readClass(chars, i, at);
      parts.push(part);
      i = next;
    } else {
      text += char;
    }
  }
  flush();
  if (parts.filter((part) => !('text' in part)).length > MAX_WILDCARDS)
    throw filterError(at, `a pattern with at most ${MAX_WILDCARDS} wildcards and classes`);
  return parts;
}

function readClass(chars: readonly string[], start: number, at: number): { part: GlobPart; next: number } {
  let i = start + 1;
  const negated = chars[i] === '^';
  if (negated) i++;
  const ranges: [string, string][] = [];
  for (let first = true; first || chars[i] !== ']'; first = false) {
    const low = chars[i];
    if (low === undefined) throw filterError(at, 'a "]" for every "[" of the pattern');
    const high = chars[i + 2];
    if (chars[i + 1] === '-' && high !== undefined && high !== ']') {
      if ((high.codePointAt(0) as number) < (low.codePointAt(0) as number))
        throw filterError(at, `a pattern whose range ${low}-${high} runs upwards`);
      ranges.push([low, high]);
      i += 3;
    } else {
      ranges.push([low, low]);
      i++;
    }
  }
  return { part: { ranges, negated }, next: i };
}
