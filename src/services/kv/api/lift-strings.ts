import { randomBytes } from 'node:crypto';
import { closingQuote } from './json-extent.js';
import { isPlainText } from './plain-text.js';

/** Bytes from which a string is worth being passed on as it is: as text it is decoded, parsed, measured and encoded again. */
const LARGE = 16 * 1024;
const QUOTE = 34;
/** Bytes between two places to rest. */
const STEP = 64 * 1024;
const NEAR = 8;

/** Nobody can guess what stands for a string, so no string of a client is taken for one. */
const SECRET = randomBytes(12).toString('hex');

/** A JSON text in which names stand for large strings, and their bytes by these names. */
export interface LiftedStrings {
  readonly rest: Buffer;
  readonly lifted: ReadonlyMap<string, Buffer>;
}

const NONE: LiftedStrings['lifted'] = new Map();

/**
 * Takes the large strings without escapes out of a JSON text; they are slices of it.
 * @param body valid UTF-8
 */
export function* liftLargeStrings(body: Buffer): Generator<void, LiftedStrings> {
  if (body.length < LARGE) return { rest: body, lifted: NONE };
  const lifted = new Map<string, Buffer>();
  const parts: Buffer[] = [];
  let kept = 0;
  let rest = STEP;
  for (let open = body.indexOf(QUOTE); open >= 0; ) {
    const close = yield* closingQuote(body, open + 1);
    if (close - open > LARGE && close < body.length && isPlainText(body.subarray(open + 1, close))) {
      const name = `${SECRET}-${lifted.size}`;
      lifted.set(name, body.subarray(open + 1, close));
      parts.push(body.subarray(kept, open + 1), Buffer.from(name));
      kept = close;
    }
    open = nextQuote(body, close + 1);
    if (open >= rest) {
      yield;
      rest = open + STEP;
    }
  }
  if (lifted.size === 0) return { rest: body, lifted };
  parts.push(body.subarray(kept));
  return { rest: Buffer.concat(parts), lifted };
}

/** Mostly only a comma is between two strings. */
function nextQuote(body: Buffer, from: number): number {
  for (let at = from; at < from + NEAR; at++) if (body[at] === QUOTE) return at;
  return body.indexOf(QUOTE, from);
}
