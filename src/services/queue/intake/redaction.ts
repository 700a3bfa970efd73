import { createHash } from 'node:crypto';
import { canonicalHeaderName, type HeaderMap, type Redaction } from '../message/message.js';

/** The fields of a `Redact-Fields` header: `body`, `header` or `headers`, `header[Name]`. `undefined` when it names others. */
export function parseRedaction(text: string): Redaction | undefined {
  let body = false;
  let all = false;
  const names: string[] = [];
  for (const field of text.split(',').map((part) => part.trim())) {
    const name = /^headers?\[([^\]]+)\]$/i.exec(field)?.[1];
    if (/^body$/i.test(field)) body = true;
    else if (/^headers?$/i.test(field)) all = true;
    else if (name !== undefined) names.push(name.trim().toLowerCase());
    else return undefined;
  }
  return { body, headers: all ? 'all' : names };
}

/** What stands in the place of a value that is not to be seen: equal values still look equal. */
export function redacted(value: string | Buffer): string {
  return `REDACTED:${createHash('sha256').update(value).digest('hex')}`;
}

function hiding(redact: Redaction | undefined): (name: string) => boolean {
  if (redact === undefined) return () => false;
  const { headers } = redact;
  return headers === 'all' ? () => true : (name) => headers.includes(name.toLowerCase());
}

export type HeaderLists = Readonly<Record<string, readonly string[]>>;

/** Headers of an answer as the API shows them. */
export function shownLists(headers: HeaderLists, redact?: Redaction): HeaderLists {
  const hides = hiding(redact);
  const shown = Object.entries(headers).map(([name, values]) => [
    name,
    hides(name) ? values.map(redacted) : values,
  ]);
  return Object.fromEntries(shown);
}

/** Headers as the API shows them: names in canonical case, lists of values. */
export function shownHeaders(headers: HeaderMap, redact?: Redaction): Record<string, string[]> {
  const hides = hiding(redact);
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      canonicalHeaderName(name),
      [hides(name) ? redacted(value) : value],
    ]),
  );
}
