const [QUOTE, BACKSLASH, LETTER_U] = [0x22, 0x5c, 0x75] as const;
/** First and largest look ahead in a string, in bytes. */
const [NEAR, FAR] = [256, 64 * 1024] as readonly [number, number];

/**
 * A JSON string from its bytes between the quotes, decoded part by part.
 * @param body valid UTF-8
 * @param part bytes of one step
 * @returns `undefined` when it is no JSON string
 */
export function* longString(
  body: Buffer,
  start: number,
  end: number,
  part: number,
): Generator<void, string | undefined> {
  const parts: string[] = [];
  for (let from = start; from < end; ) {
    const to = cut(body, from, Math.min(end, from + part), end);
    try {
      parts.push(JSON.parse(`"${body.toString('utf8', from, to)}"`) as string);
    } catch {
      return undefined;
    }
    from = to;
    yield;
  }
  return parts.join('');
}

/** The first place from `wanted` on that is within no escape and no character. */
function cut(body: Buffer, from: number, wanted: number, end: number): number {
  let at = from;
  while (at < wanted) {
    if (body[at] !== BACKSLASH) {
      const next = body.subarray(at, wanted).indexOf(BACKSLASH);
      if (next < 0) {
        at = wanted;
        break;
      }
      at += next;
    }
    at += body[at + 1] === LETTER_U ? 6 : 2;
  }
  while (at < end && ((body[at] as number) & 0xc0) === 0x80) at++;
  return Math.min(at, end);
}

/**
 * Place of the quote that ends a JSON string; the length of the text where there is none.
 * @param from in the string, and in no escape
 */
export function* stringEnd(body: Buffer, from: number): Generator<void, number> {
  let at = from;
  for (let size = NEAR; at < body.length; size = Math.min(FAR, size * 2)) {
    const end = Math.min(body.length, at + size);
    const look = body.subarray(at, end);
    const found = look.indexOf(QUOTE);
    if ((found < 0 ? look : look.subarray(0, found)).indexOf(BACKSLASH) < 0) {
      if (found >= 0) return at + found;
      at = end;
    } else {
      for (; at < end; at++) {
        if (body[at] === QUOTE) return at;
        if (body[at] === BACKSLASH) at++;
      }
    }
    yield;
  }
  return body.length;
}
