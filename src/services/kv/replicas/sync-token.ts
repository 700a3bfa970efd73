import type { Position } from './replication.js';

/**
 * What the reader of a token has seen of a database: nothing (`any` server will do), everything up to a position, or
 * something of which no position is known, so that only the primary will do.
 */
export type Freshness = 'any' | 'unknown' | Position;

/**
 * Makes the values of the sync-token header: each differs from all others, of other processes too, so that a
 * client which waits for "newer than" after a write never sees an old one.
 * @param prefix unique to this process: letters and digits
 */
export function syncTokens(prefix: string): (freshness?: Freshness) => string {
  let count = 0;
  return (freshness) => {
    const token = `${prefix}.${(++count).toString(36)}`;
    return freshness === undefined ? token : token + suffixOf(freshness);
  };
}

function suffixOf(freshness: Freshness): string {
  if (freshness === 'unknown') return '';
  return freshness === 'any' ? '.0' : `.${freshness.history}.${freshness.offset}`;
}

/** Up to 15 digits, an offset is exact as a number. */
const TOKEN = /^[0-9a-z]+\.[0-9a-z]+\.(?:0|([0-9a-f]{16})\.(\d{1,15}))$/;

/** What a token says that a client sent: one that this gateway, or another like it, did not make means `unknown`. */
export function freshnessOf(token: string | undefined): Freshness {
  if (token === undefined || token === '') return 'any';
  const match = TOKEN.exec(token);
  if (match === null) return 'unknown';
  const [, history, offset] = match;
  return history === undefined ? 'any' : { history, offset: Number(offset) };
}
