import { randomBytes } from 'node:crypto';
import { closingQuote } from './json-extent.js';
import { isPlainText } from './plain-text.js';

/** Bytes from which a string is worth being passed on as it is: as text it is decoded, parsed, measured and encoded again. */
const LARGE = 16 * 1024;
const QUOTE = 34;

/** Nobody can guess what stands for a string, so no string of a client is taken for one. */
const SECRET = randomBytes(12).toString('hex');

/** A JSON text in which names stand for large strings, and their bytes by these names. */
export interface LiftedStrings {
  readonly text: string;
  readonly lifted: ReadonlyMap<string, Buffer>;
}

/**
 * Takes the large strings without escapes out of a JSON text; they are slices of it.
 * @param body valid UTF-8
 * @returns `undefined` when there are none
 */
export function liftLargeStrings(body: Buffer): LiftedStrings | undefined {
  if (body.length < LARGE) return undefined;
  const lifted = new Map<string, Buffer>();
  let text = '';
  let kept = 0;
  for (let open = body.indexOf(QUOTE); open >= 0; ) {
    const close = closingQuote(body, open + 1);
    if (close - open > LARGE && close < body.length && isPlainText(body.subarray(open + 1, close))) {
      const name = `${SECRET}-${lifted.size}`;
      lifted.set(name, body.subarray(open + 1, close));
      text += body.toString('utf8', kept, open + 1) + name;
      kept = close;
    }
    open = body.indexOf(QUOTE, close + 1);
  }
  return lifted.size === 0 ? undefined : { text: text + body.toString('utf8', kept), lifted };
}
