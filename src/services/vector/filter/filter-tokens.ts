import { HttpError } from '../../../http/errors.js';

/** A piece of a filter. `at` is its first character's place in the text, from 0. */
export type Token =
  | { readonly kind: 'word'; readonly text: string; readonly at: number }
  | { readonly kind: 'string'; readonly value: string; readonly at: number }
  | { readonly kind: 'number'; readonly value: number; readonly at: number }
  | { readonly kind: 'sign'; readonly text: Sign; readonly at: number }
  | { readonly kind: 'end'; readonly at: number };

export type Sign = '(' | ')' | ',' | '=' | '!=' | '<' | '<=' | '>' | '>=';

/** A word is a keyword or a whole path: `a.b[0]`, `tags[#-1]`, `x-y`, `a."b c".d`. */
const WORD = /[a-zA-Z_][a-zA-Z_0-9.[\]#-]*/y;
/** How it goes on behind a quoted key. */
const WORD_GOES_ON = /[.[][a-zA-Z_0-9.[\]#-]*/y;
const NUMBER = /[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const SIGN = /!=|<=|>=|[()=<>,]/y;
const BLANK = /\s+/y;
/** What may not follow a number at once: `1a` and `1.5.2` are typing mistakes. */
const NUMBER_GOES_ON = /[a-zA-Z_0-9.]/;

/** A filter that cannot be understood, with the place and what was expected there. */
export function filterError(at: number, expected: string): HttpError {
  return new HttpError('invalid_request', `filter, column ${at + 1}: expected ${expected}`);
}

/** @throws HttpError 400 with the column of what is no token */
export function filterTokens(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0];
  };
  while (at < text.length) {
    const blank = match(BLANK);
    if (blank !== undefined) {
      at += blank.length;
      continue;
    }
    const quote = text[at];
    if (quote === "'" || quote === '"') {
      const { value, end } = readString(text, at, quote);
      // a key in quotes, and how its path goes on
      const path = text[end] === '.' || text[end] === '[' ? text.slice(at, endOfPath(text, end)) : undefined;
      tokens.push(path === undefined ? { kind: 'string', value, at } : { kind: 'word', text: path, at });
      at = path === undefined ? end : at + path.length;
      continue;
    }
    const begin = match(WORD);
    const word = begin && text.slice(at, endOfPath(text, at + begin.length));
    const number = word === undefined ? match(NUMBER) : undefined;
    const sign = word === undefined && number === undefined ? match(SIGN) : undefined;
    if (word !== undefined) tokens.push({ kind: 'word', text: word, at });
    else if (number !== undefined) tokens.push(numberToken(text, number, at));
    else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign as Sign, at });
    else throw filterError(at, 'a field, an operator, a number or a quoted text');
    at += (word ?? number ?? (sign as string)).length;
  }
  tokens.push({ kind: 'end', at });
  return tokens;
}

/** Where a path ends of which the part before `at` was read: a dot may be followed by a key in quotes. */
function endOfPath(text: string, at: number): number {
  let end = at;
  for (;;) {
    const quote = text[end];
    if (text[end - 1] === '.' && (quote === "'" || quote === '"')) end = readString(text, end, quote).end;
    WORD_GOES_ON.lastIndex = end;
    const more = WORD_GOES_ON.exec(text)?.[0];
    if (more === undefined) return end;
    end += more.length;
  }
}

function numberToken(text: string, digits: string, at: number): Token {
  const end = at + digits.length;
  if (NUMBER_GOES_ON.test(text[end] ?? '')) throw filterError(end, 'the end of the number');
  const value = Number(digits);
  if (!Number.isFinite(value)) throw filterError(at, 'a number that float64 can hold');
  // JSON knows no -0
  return { kind: 'number', value: value === 0 ? 0 : value, at };
}

/**
 * Clients escape quotes with a backslash, by doubling or by the other kind of quotes; a backslash before anything but a
 * quote or a backslash stands for itself.
 */
export function readString(text: string, start: number, quote: string): { value: string; end: number } {
  let value = '';
  for (let at = start + 1; at < text.length; at++) {
    const char = text[at] as string;
    const next = text[at + 1];
    if (char === '\\' && (next === "'" || next === '"' || next === '\\')) {
      value += next;
      at++;
    } else if (char === quote && next === quote) {
      value += quote;
      at++;
    } else if (char === quote) {
      if (value.includes('\0') || /\p{Surrogate}/u.test(value))
        throw filterError(start, 'text without U+0000 and without lone surrogates');
      return { value, end: at + 1 };
    } else {
      value += char;
    }
  }
  throw filterError(text.length, `the closing ${quote} of the text at column ${start + 1}`);
}
